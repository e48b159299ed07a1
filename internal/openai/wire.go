package openai

import (
	"errors"
	"net"
	"os"
	"syscall"
	"time"
)

// An arrival is when and how some bytes came.
type arrival struct {
	at     time.Time     // the kernel's receive stamp of the last segment, else the time after the read
	delay  time.Duration // time of the read − at; 0 without a stamp
	kernel bool          // at is the kernel's
	read   uint64        // which socket read of this connection it was
}

// A wire is a TCP connection whose reads know when their bytes arrived and keep a deadline that may move with
// every chunk. TLS runs over it, so the stamps are the kernel's there too.
type wire struct {
	net.Conn
	stamps *stamper // nil: none to be had
	clock  *clock
	until  time.Time // reads end here; zero: never
	armed  time.Time // what the runtime's timer is set to
	last   arrival
	poll   bool   // a read is of what stands in the kernel; with nothing there it is past its deadline
	hold   bool   // a write is not to wait: what the kernel has no room for is left
	left   []byte // goes out before anything else

	// wake is asked before each read, and each time that the deadline was set to the past to have it asked. It is true when the
	// deadline has moved. nil: nobody does that.
	wake func() bool
}

func newWire(c net.Conn, k *clock) *wire { return &wire{Conn: c, clock: k, stamps: newStamper(c)} }

// arm sets the deadline of writes, and of reads, for a request that begins.
func (w *wire) arm() error {
	w.armed = w.until
	return w.SetDeadline(w.until)
}

func (w *wire) Write(p []byte) (int, error) {
	if !w.hold {
		if err := w.flush(); err != nil {
			return 0, err
		}
		return w.Conn.Write(p)
	}
	n := 0
	if len(w.left) == 0 {
		var err error
		if n, err = w.stamps.write(p); err != nil {
			return n, err
		}
	}
	w.left = append(w.left, p[n:]...)
	return len(p), nil
}

// flush writes what was left.
func (w *wire) flush() error {
	if len(w.left) == 0 {
		return nil
	}
	_, err := w.Conn.Write(w.left)
	w.left = nil
	return err
}

func (w *wire) Read(p []byte) (int, error) {
	if w.poll {
		n, _, err := w.stamps.poll(p)
		if errors.Is(err, syscall.EAGAIN) {
			err = os.ErrDeadlineExceeded
		}
		return n, err
	}
	for {
		// A deadline that moved away is left to fire first: setting a timer for every chunk costs more than
		// one read too many.
		if w.until.IsZero() != w.armed.IsZero() || w.until.Before(w.armed) {
			if err := w.rearm(); err != nil {
				return 0, err
			}
		}
		if w.wake != nil && w.wake() {
			if err := w.rearm(); err != nil {
				return 0, err
			}
			continue
		}
		n, stamp, err := w.receive(p)
		now := time.Now()
		if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) {
			if now.Before(w.until) || w.wake != nil && w.until.IsZero() { // moved away meanwhile
				if err := w.rearm(); err != nil {
					return 0, err
				}
				continue
			}
			n, stamp, err = w.stood(p, now, err)
		}
		if n > 0 {
			w.last = arrival{at: now, read: w.last.read + 1}
			if stamp != 0 {
				stamp = w.stamps.ofData(stamp, now)
				w.last.at, w.last.kernel = w.clock.instant(stamp, now), true
				w.last.delay = now.Sub(w.last.at)
			}
		}
		return n, err
	}
}

// rearm sets the deadline of reads anew.
func (w *wire) rearm() error {
	w.armed = w.until
	return w.SetReadDeadline(w.until)
}

// stood reads what stands in the kernel when a deadline has passed. This process may have been stopped, and Go looks at the
// deadline before it looks at the socket: what came in time was in time. The last byte of the read decides, so after a stop
// that was longer than the timeout the kernel may have put so much together that a stall is told which was ours. late is the
// deadline's error.
func (w *wire) stood(p []byte, now time.Time, late error) (n int, stamp int64, err error) {
	if w.stamps == nil {
		return 0, 0, late
	}
	if n, stamp, err = w.stamps.poll(p); err == nil {
		stamp = w.stamps.ofData(stamp, now)
	}
	if err == nil && (stamp == 0 || w.clock.instant(stamp, now).After(w.until)) || errors.Is(err, syscall.EAGAIN) {
		return 0, 0, late
	}
	return n, stamp, err
}

func (w *wire) receive(p []byte) (n int, stamp int64, err error) {
	if w.stamps != nil {
		return w.stamps.read(p)
	}
	n, err = w.Conn.Read(p)
	return n, 0, err
}

// A conn is one connection to the target: a wire, or TLS over one.
type conn struct {
	wire *wire
	app  net.Conn
	used time.Time // when it was opened or last used
	err  error     // what the last read ended with
	news [1]byte
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.app.Read(p)
	c.err = err
	return n, err
}

// silent says that nothing has come since the last answer: no bytes, which would be taken for the next one's, and no end. What
// TLS says for itself, a session's ticket, is nothing, and neither is a part of a record. Without stamps nobody can look, and
// it is taken to be so.
func (c *conn) silent() bool {
	if c.wire.stamps == nil {
		return true
	}
	c.wire.poll, c.wire.hold = true, true // what TLS answers for itself, a new key, does not wait either
	defer func() { c.wire.poll, c.wire.hold = false, false }()
	n, err := c.app.Read(c.news[:])
	return n == 0 && errors.Is(err, os.ErrDeadlineExceeded)
}

// write writes pieces of a message, one after the other.
func (c *conn) write(pieces ...[]byte) error {
	for _, p := range pieces {
		if len(p) == 0 {
			continue
		}
		if _, err := c.app.Write(p); err != nil {
			return err
		}
	}
	return nil
}

// offer writes p and does not wait. n is what needs no further write: what the kernel took, over TLS all of p, since a record
// cannot be taken back, and the wire keeps what the kernel had no room for. The wire has stamps.
func (c *conn) offer(p []byte) (n int, err error) {
	if c.app == net.Conn(c.wire) {
		return c.wire.stamps.write(p)
	}
	c.wire.hold = true
	defer func() { c.wire.hold = false }()
	return c.app.Write(p)
}

// cut closes the connection under TLS's feet: no close_notify, which could block behind a write.
func (c *conn) cut() { _ = c.wire.Close() }
