package daemon

import (
	"context"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"replayd/internal/sim"
)

// serve runs an engine until end is called.
func (l *life) serve() (end func()) {
	o := sim.Defaults()
	o.Slots, o.MaxQueue = of(l.dice, 64, 1, 4), of(l.dice, 4096, 0)
	o.TTFT, o.ITL = 50*time.Millisecond, 10*time.Millisecond
	all := sim.Faults{
		Error500: 0.2, Error429: 0.1, Cut: 0.1, Garbled: 0.1, Empty: 0.1, Stalled: 0.1, ErrorEvent: 0.1, Abort: 0.1,
	}
	o.Faults = of(l.dice, sim.Faults{}, sim.Faults{}, all, sim.Faults{Error500: 1}, sim.Faults{Stalled: 0.5})
	e, err := sim.New(o)
	if err != nil {
		l.Fatal(err)
	}
	s := e.Server()
	inner := s.Handler
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if id := r.Header.Get("X-Request-Id"); r.Method == http.MethodPost {
			l.mu.Lock()
			l.arrivals[id]++
			l.mu.Unlock()
		}
		<-time.After(toil)
		inner.ServeHTTP(w, r)
	})
	var serving sync.WaitGroup
	serving.Go(func() { _ = s.Serve(l.wire) })
	return func() {
		_ = s.Close()
		serving.Wait()
		<-time.After(time.Second) // net/http waits a moment before it closes a connection whose request body it has not read
	}
}

// dial connects to the engine. If connections are rough, every third is refused and every third breaks.
func (l *life) dial(ctx context.Context, network, address string) (net.Conn, error) {
	<-time.After(travel)
	l.mu.Lock()
	n := l.dials
	l.dials++
	l.mu.Unlock()
	if l.rough && n%3 == 2 {
		return nil, syscall.ECONNREFUSED
	}
	c, err := l.wire.Dial(ctx, network, address)
	if err == nil && l.rough && n%3 == 1 {
		c = &brittle{c, 37 * (n % 29)}
	}
	return c, err
}

// A brittle connection breaks after left bytes from the server.
type brittle struct {
	net.Conn
	left int
}

func (b *brittle) Read(p []byte) (int, error) {
	if b.left == 0 {
		_ = b.Close()
		return 0, syscall.ECONNRESET
	}
	n, err := b.Conn.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}
