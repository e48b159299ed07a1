package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"time"
)

// A Conn is a connection: TCP with kernel timestamps, another transport without, or TLS over either. One goroutine reads.
// Another one may write at the same time.
type Conn struct {
	*socket
	app    net.Conn // the socket, or TLS over it
	made   time.Time
	used   time.Time
	err    error
	peeked [1]byte
}

// NewConn returns a Conn over a transport that has just been opened.
func NewConn(transport net.Conn, k *Clock) *Conn {
	now := time.Now()
	s := &socket{Conn: transport, clock: k, stamps: newStamper(transport), since: now}
	return &Conn{socket: s, app: s, made: now, used: now}
}

// StartTLS does a client's TLS handshake. After an error the connection is unusable.
func (c *Conn) StartTLS(ctx context.Context, cfg *tls.Config) error {
	secure := tls.Client(c.socket, cfg)
	if err := secure.HandshakeContext(ctx); err != nil {
		return err
	}
	c.app, c.used = secure, time.Now()
	return nil
}

// Stamped reports whether kernel timestamps are on. Silent and Offer need them.
func (c *Conn) Stamped() bool { return c.stamps != nil }

// Fresh reports whether the connection was opened or last used less than idle before now.
func (c *Conn) Fresh(now time.Time, idle time.Duration) bool { return now.Sub(c.used) < idle }

// Arm sets the read and write deadlines of a new exchange and clears the error of earlier reads.
func (c *Conn) Arm(until time.Time) error {
	c.err, c.Until, c.armed, c.before, c.since = nil, until, until, c.sent, time.Now()
	return c.SetDeadline(until)
}

// Wake makes a goroutine that is blocked in Read call the function Wakes. Any goroutine may call it.
func (c *Conn) Wake() { _ = c.SetReadDeadline(time.Unix(1, 0)) } // a closed connection has woken it

func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.app.Read(p)
	c.err = err
	return n, err
}

// Err returns the error of the last Read since Arm.
func (c *Conn) Err() error { return c.err }

// Silent reports that neither bytes nor the end of the connection have arrived since the last answer. TLS-internal records,
// such as session tickets, and incomplete records do not count as bytes. Without kernel timestamps the connection cannot be
// checked, and Silent is true.
func (c *Conn) Silent() bool {
	if c.stamps == nil {
		return true
	}
	c.once = true // a TLS key update that is sent in reply must not block either
	defer func() { c.once = false }()
	n, err := c.app.Read(c.peeked[:])
	return n == 0 && errors.Is(err, os.ErrDeadlineExceeded)
}

// Write writes the pieces of a message in order.
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

// Offer writes p without blocking. It needs Stamped. n is the number of bytes that need no further Write. Over TCP, these
// are the bytes that the kernel accepted. Over TLS, n is len(p), since a record cannot be taken back; bytes that the kernel
// had no room for are Left.
func (c *Conn) Offer(p []byte) (n int, err error) {
	if c.app == net.Conn(c.socket) {
		n, err = c.stamps.write(p)
		c.sent += uint64(n)
		return n, err
	}
	c.once = true
	defer func() { c.once = false }()
	return c.app.Write(p)
}

// Taken reports whether the peer's kernel has acknowledged a byte written since Arm, and the connection's round trip as
// the kernel smooths it. known is false where the kernel does not say.
func (c *Conn) Taken() (taken bool, trip time.Duration, known bool) {
	if c.stamps == nil {
		return false, 0, false
	}
	acknowledged, trip, known := c.stamps.taken()
	return acknowledged > c.before, trip, known
}

// Left reports whether offered bytes are still to be written. They are sent before any others.
func (c *Conn) Left() bool { return len(c.left) > 0 }

// Cut closes the transport without a TLS close_notify, which could block behind a pending write.
func (c *Conn) Cut() { _ = c.Close() }
