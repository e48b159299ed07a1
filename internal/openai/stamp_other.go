//go:build !linux

package openai

import (
	"io"
	"net"
	"time"
)

// A stamper reads receive stamps, which only Linux gives.
type stamper struct{}

func keepStamping() io.Closer { return nil }

func newStamper(net.Conn) *stamper { return nil }

func (*stamper) read([]byte) (n int, stamp int64, err error) { panic("openai: no receive stamps here") }

func (*stamper) poll([]byte) (n int, stamp int64, err error) { panic("openai: no receive stamps here") }

func (*stamper) ofData(int64, time.Time) int64 { panic("openai: no receive stamps here") }

func (*stamper) write([]byte) (int, error) { panic("openai: no receive stamps here") }
