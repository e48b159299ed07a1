package wire

import (
	"errors"
	"net"
	"os"
	"syscall"
	"time"
)

// A socket is a TCP connection. Each read has a kernel timestamp. The read deadline may move with every chunk without
// setting a timer. TLS runs over a socket, so its timestamps are the kernel's too.
type socket struct {
	net.Conn
	stamps *stamper // nil: no kernel timestamps
	clock  *Clock
	Until  time.Time // read deadline; zero: none. The write deadline does not change with it
	armed  time.Time // deadline of the runtime's timer
	Last   Arrival   // of the last read
	since  time.Time // bytes that are read next came no earlier: the last ones, or the begin of the exchange
	once   bool      // never block: a read without bytes in the kernel is a timeout, and a write moves bytes that the kernel has no room for to left
	left   []byte    // sent before any other bytes
	sent   uint64    // bytes that the kernel has accepted
	before uint64    // sent when the present exchange began

	// Wakes is called before each read, and each time that the deadline was set to the past to wake the reader. It returns
	// true if it has changed the deadline. It may be nil.
	Wakes func() bool
}

func (s *socket) Write(p []byte) (int, error) {
	if !s.once {
		if err := s.Flush(); err != nil {
			return 0, err
		}
		n, err := s.Conn.Write(p)
		s.sent += uint64(n)
		return n, err
	}
	n := 0
	if len(s.left) == 0 {
		var err error
		if n, err = s.stamps.write(p); err != nil {
			return n, err
		}
		s.sent += uint64(n)
	}
	s.left = append(s.left, p[n:]...)
	return len(p), nil
}

// Flush writes the bytes that Offer left.
func (s *socket) Flush() error {
	if len(s.left) == 0 {
		return nil
	}
	n, err := s.Conn.Write(s.left)
	s.sent += uint64(n)
	s.left = nil
	return err
}

func (s *socket) Read(p []byte) (int, error) {
	if s.once {
		n, _, err := s.stamps.poll(p)
		if errors.Is(err, syscall.EAGAIN) {
			err = os.ErrDeadlineExceeded
		}
		return n, err
	}
	for {
		// If the deadline has moved later, the old timer may fire first: to set a timer for every chunk costs more than one
		// additional read.
		if s.Until.IsZero() != s.armed.IsZero() || s.Until.Before(s.armed) {
			if err := s.rearm(); err != nil {
				return 0, err
			}
		}
		if s.Wakes != nil && s.Wakes() {
			if err := s.rearm(); err != nil {
				return 0, err
			}
			continue
		}
		n, stamp, err := s.receive(p)
		now := time.Now()
		if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) {
			if now.Before(s.Until) || s.Wakes != nil && s.Until.IsZero() { // the deadline has moved meanwhile
				if err := s.rearm(); err != nil {
					return 0, err
				}
				continue
			}
			n, stamp, err = s.stood(p, now, err)
		}
		if n > 0 {
			read := s.Last.Read + 1
			if s.Last = (Arrival{At: now, Read: read}); stamp != 0 {
				s.Last = s.arrival(stamp, now)
				s.Last.Read = read
			}
			if !s.Last.Unsure {
				s.since = s.Last.At
			}
		}
		return n, err
	}
}

func (s *socket) rearm() error {
	s.armed = s.Until
	return s.SetReadDeadline(s.Until)
}

// stood reads the bytes in the kernel after a deadline has passed. Go checks the deadline before the socket. Without stood,
// bytes that arrived in time would be lost after this process stood still. The arrival of the last byte decides. After a
// standstill longer than the timeout the kernel may have merged segments: then a stall of this process is reported as the
// server's. late is the deadline's error.
func (s *socket) stood(p []byte, now time.Time, late error) (n int, stamp int64, err error) {
	if s.stamps == nil {
		return 0, 0, late
	}
	n, stamp, err = s.stamps.poll(p)
	if err == nil && (stamp == 0 || s.arrival(stamp, now).At.After(s.Until)) || errors.Is(err, syscall.EAGAIN) {
		return 0, 0, late
	}
	return n, stamp, err
}

// arrival returns when bytes came that were read at now, by their timestamp.
func (s *socket) arrival(stamp int64, now time.Time) Arrival {
	at, unsure := s.clock.instant(stamp, now, s.since)
	at = s.stamps.ofData(at, s.since, now)
	return Arrival{At: at, Delay: now.Sub(at), Kernel: true, Unsure: unsure}
}

func (s *socket) receive(p []byte) (n int, stamp int64, err error) {
	if s.stamps != nil {
		return s.stamps.read(p)
	}
	n, err = s.Conn.Read(p)
	return n, 0, err
}
