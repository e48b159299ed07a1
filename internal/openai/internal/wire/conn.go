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
	peeked [1]byte
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

// NetConn is the transport, for its addresses. Reading or writing on it would break the connection.
func (c *Conn) NetConn() net.Conn { return c.socket.Conn }

// Stamped says whether kernel stamps are on. Silent and Offer work only then.
func (c *Conn) Stamped() bool { return c.socket.stamps != nil }

// Used notes that the connection was of use until now.
func (c *Conn) Used(now time.Time) { c.used = now }

// Fresh says whether the connection was opened, or last used, less than idle before now.
func (c *Conn) Fresh(now time.Time, idle time.Duration) bool { return now.Sub(c.used) < idle }

// Arm sets the deadline of reads and writes for a new exchange, and clears the error of earlier reads.
func (c *Conn) Arm(until time.Time) error {
	c.err, c.socket.until = nil, until
	return c.socket.arm()
}

// Until moves the deadline of reads; zero is none. The deadline of writes stays.
func (c *Conn) Until(until time.Time) { c.socket.until = until }

// WriteUntil moves the deadline of writes; zero is none.
func (c *Conn) WriteUntil(until time.Time) error { return c.socket.SetWriteDeadline(until) }

// OnWake sets a function that the reader calls before each read and after each Wake. It returns true if the deadline has moved. nil:
// none.
func (c *Conn) OnWake(wake func() bool) { c.socket.wake = wake }

// Wake makes a goroutine that waits in Read call the function of OnWake. Any goroutine may call it.
func (c *Conn) Wake() { _ = c.socket.SetReadDeadline(time.Unix(1, 0)) } // a closed connection has woken it

func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.app.Read(p)
	c.err = err
	return n, err
}

// Err is the error of the last Read since Arm.
func (c *Conn) Err() error { return c.err }

// Last is when and how the bytes of the last read came.
func (c *Conn) Last() Arrival { return c.socket.last }

// Silent says that neither bytes nor the end of the connection have come since the last answer. TLS-internal records, such as session
// tickets, and incomplete records do not count as bytes. Without stamps the connection cannot be checked, and Silent is true.
func (c *Conn) Silent() bool {
	if c.socket.stamps == nil {
		return true
	}
	c.socket.once = true // a TLS key update that is sent in reply does not block either
	defer func() { c.socket.once = false }()
	n, err := c.app.Read(c.peeked[:])
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

// Offer writes p without blocking. n is the number of bytes that need no further Write: the bytes that the kernel took; over TLS all
// of p, since a record cannot be taken back, and the bytes that the kernel had no room for are Left. It needs Stamped.
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

// Flush writes the bytes that Offer left.
func (c *Conn) Flush() error { return c.socket.flush() }

// Cut closes the transport without a TLS close_notify, which could block behind a write.
func (c *Conn) Cut() { _ = c.socket.Close() }
