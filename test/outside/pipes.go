package outside

import (
	"context"
	"net"
	"sync"
)

// A Pipes listens for the connections that its Dial makes in memory, so that a server and its clients live in virtual time.
type Pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	close  func()
}

// NewPipes makes one.
func NewPipes() *Pipes {
	p := &Pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	p.close = sync.OnceFunc(func() { close(p.closed) })
	return p
}

// Accept implements net.Listener.
func (p *Pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (p *Pipes) Close() error {
	p.close()
	return nil
}

// Addr implements net.Listener. Nothing listens there.
func (p *Pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9797} }

// Dial is for http.Transport's DialContext.
func (p *Pipes) Dial(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.conns <- far:
		return near, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}
