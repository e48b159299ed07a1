//go:build faults

package faults_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

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

// A passage is one request as the proxy saw it. A retry is a separate passage.
type passage struct {
	id      string
	fault   string
	began   time.Time
	ended   time.Time
	engine  error  // why the engine's answer was incomplete; nil: complete, or not requested
	left    error  // why the client did not get all; nil: it did
	bytes   int    // of the answer, given to the client
	head    bool   // the whole head was among them
	content bool   // and a chunk with content
	finish  bool   // and a finish reason, or [DONE]; of an unstreamed answer: all of it
	done    bool   // and [DONE]
	spoiled bool   // and the part that the fault spoils
	over    bool   // the fault ended the connection
	stopped ending // how the fault ended it
	reset   bool   // ended by a reset, also by one of the engine
	stream  bool
	text    string // the content of the answer, as it was given
	before  string // the content of the previous answer, which the request carries
}

// newProxy returns a proxy; listen gives it addresses.
func newProxy(t *testing.T, engine string, seed uint64, choose func(id string) fault) *proxy {
	t.Helper()
	p := &proxy{engine: engine, choose: choose, seed: seed, conns: map[net.Conn]bool{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	t.Cleanup(p.close)
	return p
}

// listen accepts connections, over TLS if secure is not nil, and returns the address.
func (p *proxy) listen(t *testing.T, secure *tls.Config) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	context.AfterFunc(p.ctx, func() { l.Close() })
	p.running.Go(func() {
		for {
			raw, err := l.Accept()
			if err != nil {
				return
			}
			c := raw
			if secure != nil {
				c = tls.Server(raw, secure)
			}
			p.running.Go(func() { p.serve(c, raw.(*net.TCPConn)) })
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
	outside.Until(t, totalLimit+10*time.Second, func() error {
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
func (p *proxy) serve(c net.Conn, raw *net.TCPConn) {
	defer p.release(raw)
	if !p.hold(raw) {
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
		x := &exchange{proxy: p, client: c, raw: raw, in: in, request: req, body: body, stop: -1}
		x.id, x.began = req.Header.Get("X-Request-Id"), time.Now()
		x.before = carried(body)
		f, own := fault{name: "none"}, x.id == "" || x.id == "replayd/probe"
		p.begin()
		if !own {
			f = p.choose(x.id)
		}
		x.fault = f.name
		h := fnv.New64a()
		_, _ = h.Write([]byte(x.id))
		x.random = rand.New(rand.NewPCG(p.seed, h.Sum64())) // a retry meets the same fault as the first try
		keep := x.play(f)
		x.ended = time.Now()
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

// The proxy has a passage of each request, also of one whose client has left and whose answer is still to be written.
func TestSeenAfterTheClientLeft(t *testing.T) {
	read := make(chan bool)
	p := newProxy(t, "", 1, func(string) fault {
		close(read)
		return fault{name: "slow", slow: 200 * time.Millisecond, says: refusal("503 Service Unavailable", "")}
	})
	c, err := net.Dial("tcp", p.listen(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.WriteString(c, "POST / HTTP/1.1\r\nHost: x\r\nX-Request-Id: w/0/0\r\nContent-Length: 0\r\n\r\n")
	if err != nil {
		t.Fatal(err)
	}
	<-read
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if all := p.seen(t); len(all) != 1 || all[0].id != "w/0/0" {
		t.Errorf("want the passage of w/0/0, got %+v", all)
	}
}
