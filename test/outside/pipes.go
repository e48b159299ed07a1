package outside

import (
	"context"
	"net"
	"sync"
	"syscall"
)

// A Pipes is a listener for in-memory connections from Dial, so that a server and its clients run in virtual time.
type Pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	close  func()

	mu   sync.Mutex
	down bool
	made []net.Conn // since the server last died, including ended ones
}

// NewPipes returns a Pipes.
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

// Die closes all connections. While down is true, new ones are refused.
func (p *Pipes) Die(down bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = down
	for _, c := range p.made {
		_ = c.Close()
	}
	p.made = nil
}

// Dial is for http.Transport's DialContext.
func (p *Pipes) Dial(context.Context, string, string) (net.Conn, error) {
	p.mu.Lock()
	down := p.down
	p.mu.Unlock()
	if down {
		return nil, syscall.ECONNREFUSED
	}
	near, far := net.Pipe()
	select {
	case p.conns <- far:
		p.mu.Lock()
		defer p.mu.Unlock()
		p.made = append(p.made, near)
		return near, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}
