package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"time"
)

// A Conn is one connection: TCP with kernel stamps, any other transport without, or TLS over either. One goroutine reads;
// another may write meanwhile.
type Conn struct {
	socket *socket
	app    net.Conn // the socket, or TLS over it
	used   time.Time
	err    error
	news   [1]byte
}

// NewConn takes over a transport that was opened just now.
func NewConn(transport net.Conn, k *Clock) *Conn {
	s := newSocket(transport, k)
	return &Conn{socket: s, app: s, used: time.Now()}
}

// StartTLS makes the handshake of a client. The connection is of no use after an error.
func (c *Conn) StartTLS(ctx context.Context, cfg *tls.Config) error {
	secure := tls.Client(c.socket, cfg)
	if err := secure.HandshakeContext(ctx); err != nil {
		return err
	}
	c.app, c.used = secure, time.Now()
	return nil
}

// NetConn is the transport. It is for its addresses: whoever reads or writes there takes bytes away.
func (c *Conn) NetConn() net.Conn { return c.socket.Conn }

// Stamped says whether the kernel was asked for stamps. Only then can anybody look for news or offer bytes.
func (c *Conn) Stamped() bool { return c.socket.stamps != nil }

// Used notes that the connection was of use until now.
func (c *Conn) Used(now time.Time) { c.used = now }

// Fresh says whether the connection was opened, or last used, less than idle before now.
func (c *Conn) Fresh(now time.Time, idle time.Duration) bool { return now.Sub(c.used) < idle }

// Arm sets the deadline of reads and writes for an exchange that begins. The error of reads before it is forgotten.
func (c *Conn) Arm(until time.Time) error {
	c.err, c.socket.until = nil, until
	return c.socket.arm()
}

// Until moves the deadline of reads; zero is none. The deadline of writes stays.
func (c *Conn) Until(until time.Time) { c.socket.until = until }

// WriteUntil moves the deadline of writes; zero is none.
func (c *Conn) WriteUntil(until time.Time) error { return c.socket.SetWriteDeadline(until) }

// OnWake has the reader ask wake before each read, and each time that it was woken. It is true when the deadline has moved.
// nil: nothing is asked.
func (c *Conn) OnWake(wake func() bool) { c.socket.wake = wake }

// Wake has a goroutine that waits in Read ask what OnWake says. It may be called from any goroutine.
func (c *Conn) Wake() { _ = c.socket.SetReadDeadline(time.Unix(1, 0)) } // a closed connection has woken it

func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.app.Read(p)
	c.err = err
	return n, err
}

// Err is what the last Read ended with, since Arm.
func (c *Conn) Err() error { return c.err }

// Last is when and how the bytes of the last read came.
func (c *Conn) Last() Arrival { return c.socket.last }

// Silent says that nothing has come since the last answer: no bytes, which would be taken for the next one's, and no end. What
// TLS says for itself, a session's ticket, is nothing, and neither is a part of a record. Without stamps nobody can look, and
// it is taken to be so.
func (c *Conn) Silent() bool {
	if c.socket.stamps == nil {
		return true
	}
	c.socket.once = true // what TLS answers for itself, a new key, does not wait either
	defer func() { c.socket.once = false }()
	n, err := c.app.Read(c.news[:])
	return n == 0 && errors.Is(err, os.ErrDeadlineExceeded)
}

// Write writes pieces of a message, one after the other.
func (c *Conn) Write(pieces ...[]byte) error {
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

// Offer writes p and does not wait. n is what needs no further Write: what the kernel took, over TLS all of p, since a record
// cannot be taken back, and what the kernel had no room for is Left. Only a connection that is Stamped can do it.
func (c *Conn) Offer(p []byte) (n int, err error) {
	if c.app == net.Conn(c.socket) {
		return c.socket.stamps.write(p)
	}
	c.socket.once = true
	defer func() { c.socket.once = false }()
	return c.app.Write(p)
}

// Left says whether offered bytes are still to be written. They go out before any other.
func (c *Conn) Left() bool { return len(c.socket.left) > 0 }

// Flush writes what is left of offered bytes.
func (c *Conn) Flush() error { return c.socket.flush() }

// Cut closes the connection under TLS's feet: no close_notify, which could block behind a write.
func (c *Conn) Cut() { _ = c.socket.Close() }
