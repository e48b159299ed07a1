//go:build !linux

package wire

import (
	"io"
	"net"
	"time"
)

// A stamper reads receive timestamps. Only Linux has them.
type stamper struct{}

// KeepStamps does nothing.
func KeepStamps() io.Closer { return nil }

func newStamper(net.Conn) *stamper { return nil }

func (*stamper) read([]byte) (n int, stamp int64, err error) { panic("wire: no receive stamps here") }

func (*stamper) poll([]byte) (n int, stamp int64, err error) { panic("wire: no receive stamps here") }

func (*stamper) ofData(at, before, now time.Time) time.Time { panic("wire: no receive stamps here") }

func (*stamper) taken() (bytes uint64, trip time.Duration, known bool) {
	panic("wire: no receive stamps here")
}

func (*stamper) write([]byte) (int, error) { panic("wire: no receive stamps here") }
