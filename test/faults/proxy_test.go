//go:build faults

package faults_test

import (
	"bufio"
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"

	"replayd/test/outside"
)

// A proxy stands between replayd and the engine. Each request goes to the engine over its own connection. The proxy
// relays the answer with the fault that was chosen for the request.
type proxy struct {
	engine string                // host:port behind it
	choose func(id string) fault // by X-Request-Id; requests without one are relayed unchanged
	seed   uint64
	cancel context.CancelFunc
	ctx    context.Context

	mu       sync.Mutex
	passages []passage
	playing  int // requests whose passage has not ended
	conns    map[net.Conn]bool
	running  sync.WaitGroup
}

// A passage is one request as the proxy saw it.
type passage struct {
	id     string
	text   string // the content of the answer, as it was given
	before string // the content of the previous answer, which the request carries
}

// newProxy returns a proxy; listen gives it addresses.
func newProxy(t *testing.T, engine string, seed uint64, choose func(id string) fault) *proxy {
	t.Helper()
	p := &proxy{engine: engine, choose: choose, seed: seed, conns: map[net.Conn]bool{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	t.Cleanup(p.close)
	return p
}

// listen accepts connections and returns the address.
func (p *proxy) listen(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	context.AfterFunc(p.ctx, func() { l.Close() })
	p.running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.running.Go(func() { p.serve(c.(*net.TCPConn)) })
		}
	})
	return l.Addr().String()
}

// close ends all connections and waits for their goroutines.
func (p *proxy) close() {
	p.cancel()
	p.mu.Lock()
	for c := range p.conns {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.running.Wait()
}

// seen waits until the requests that were read have ended, and returns their passages in that order. A passage can end
// after its record: the proxy learns that the client has left by its next write.
func (p *proxy) seen(t *testing.T) (all []passage) {
	t.Helper()
	outside.Until(t, func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.playing > 0 {
			return fmt.Errorf("want no request in the proxy, got %d", p.playing)
		}
		all = slices.Clone(p.passages)
		return nil
	})
	return all
}

// begin counts a request that was read.
func (p *proxy) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.playing++
}

// end keeps the passage of a request, unless it is nil.
func (p *proxy) end(x *passage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.playing--
	if x != nil {
		p.passages = append(p.passages, *x)
	}
}

// hold registers a connection for close. It returns false if the proxy has ended.
func (p *proxy) hold(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns[c] = true
	return p.ctx.Err() == nil
}

func (p *proxy) release(c net.Conn) {
	_ = c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

// serve answers the requests of one connection until a fault or the client ends it.
func (p *proxy) serve(c *net.TCPConn) {
	defer p.release(c)
	if !p.hold(c) {
		return
	}
	in := bufio.NewReader(c)
	for {
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		x := &exchange{proxy: p, client: c, in: in, request: req, body: body, stop: -1}
		x.id, x.before = req.Header.Get("X-Request-Id"), carried(body)
		f, own := fault{name: "none"}, x.id == "" || x.id == "replayd/probe"
		p.begin()
		if !own {
			f = p.choose(x.id)
		}
		h := fnv.New64a()
		_, _ = h.Write([]byte(x.id))
		x.random = rand.New(rand.NewPCG(p.seed, h.Sum64())) // a retry meets the same fault as the first try
		keep := x.play(f)
		if own {
			p.end(nil)
		} else {
			p.end(&x.passage)
		}
		if !keep {
			return
		}
	}
}
