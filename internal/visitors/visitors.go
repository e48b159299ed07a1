// Package visitors bounds the connections of an HTTP server. Too many visitors make room for each other, so that a scrape always gets in:
// a connection that waits for its next request, or whose first one is unfinished, is closed for a new one. One address has a share only.
package visitors

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"replayd/internal/scarce"
)

// Most is the default of connections at once, as in Prometheus.
const Most = 512

const (
	shareOf      = 4                // one address has a quarter of the connections
	leastShare   = 4                // where that is less: a browser opens several
	shortIdle    = 10 * time.Second // an idle connection is closed after it while half of the connections are taken
	sweepEvery   = time.Second
	briefly      = 10 * time.Millisecond // a connection that is new, or whose request or response is on its way, is not closed for so long
	beforeAnswer = 20 << 10              // bytes that are read of a connection before its first request is complete: 12 KiB of header, and a TLS handshake
)

// A Reason says why a connection was closed.
type Reason int

// Reasons; the list is complete.
const (
	Evicted  Reason = iota // made room for another
	Refused                // found no room
	Idle                   // idle too long while half of the connections were taken
	TooLarge               // too many bytes before its first request
	numReasons
)

func (r Reason) String() string { return [...]string{"evicted", "refused", "idle", "too_large"}[r] }

// A Door admits the connections of one server.
type Door struct {
	most   func() int
	closed [numReasons]atomic.Int64

	mu       sync.Mutex
	inside   map[*guest]struct{}
	of       map[netip.Prefix]int // how many of them each address has
	sweeping bool
}

// A guest is a connection.
type guest struct {
	net.Conn
	door *Door
	from netip.Prefix
	left atomic.Int64 // bytes that may still be read before the first request

	idle  bool      // between two requests
	busy  int       // requests that handlers answer; HTTP/2 has several
	since time.Time // when it was accepted, became idle or active, or its handler returned
}

// rank is the order in which connections are closed, 0 first:
//   - 0: between two requests;
//   - 1: the request is unfinished, or net/http rejected it and holds the connection for a while;
//   - 2: nothing was read yet. A scraper sends its request at once, and is here only until the processor is free;
//   - 3: a request is being answered.
func (g *guest) rank() int {
	switch {
	case g.busy > 0:
		return 3
	case g.idle:
		return 0
	case g.left.Load() == beforeAnswer:
		return 2
	}
	return 1
}

// NewDoor returns a Door for as many connections as most says, which is asked for each new one.
func NewDoor(most func() int) *Door {
	return &Door{most: most, inside: map[*guest]struct{}{}, of: map[netip.Prefix]int{}}
}

// Listener wraps a listener of the server.
func (d *Door) Listener(l net.Listener) net.Listener { return listener{l, d} }

type listener struct {
	net.Listener
	door *Door
}

// Accept implements net.Listener. Without a free descriptor another connection makes room.
func (l listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			if scarce.Met(err) && l.door.makeRoom() {
				continue
			}
			return nil, err
		}
		if g := l.door.enter(c); g != nil {
			return g, nil
		}
	}
}

// enter admits a connection, and closes another one if that is needed. It closes the new one and returns nil if there is no room.
func (d *Door) enter(c net.Conn) *guest {
	g := &guest{Conn: c, door: d, from: Address(c.RemoteAddr().String()), since: time.Now()}
	g.left.Store(beforeAnswer)
	d.mu.Lock()
	most := max(1, d.most())
	var out []*guest
	fits := true
	for fits && (len(d.inside) >= most || d.of[g.from] >= share(most)) {
		var victim *guest
		if d.of[g.from] >= share(most) {
			victim = d.oldest(func(o *guest) bool { return o.from == g.from && o.busy == 0 })
		} else {
			victim = d.surplus(d.of[g.from])
		}
		if fits = victim != nil; fits && victim.rank() > 0 && victim.busy == 0 {
			if left := briefly - time.Since(victim.since); left > 0 {
				d.mu.Unlock()
				<-time.After(left) // the next ones wait in the kernel
				d.mu.Lock()
				continue
			}
		}
		if fits {
			d.remove(victim)
			out = append(out, victim)
		}
	}
	if fits {
		d.inside[g] = struct{}{}
		d.of[g.from]++
		d.watch(most)
	}
	d.mu.Unlock()
	d.shut(out, Evicted)
	if !fits {
		d.shut([]*guest{g}, Refused)
		return nil
	}
	return g
}

// share is how many connections of most one address may have.
func share(most int) int { return max(leastShare, most/shareOf) }

// surplus returns the connection that makes room for a new one of an address with own connections; nil: none does. It is the first by rank,
// and then by age, of the addresses with most connections. A connection that is being answered makes room only for an address with no
// connection, or with fewer than others. The lock is held.
func (d *Door) surplus(own int) *guest {
	largest := 0
	for _, n := range d.of {
		largest = max(largest, n)
	}
	busy := own == 0 || own+1 < largest
	return d.oldest(func(o *guest) bool { return d.of[o.from] == largest && (busy || o.busy == 0) })
}

// oldest returns the connection that is first to be closed of some. The lock is held.
func (d *Door) oldest(of func(*guest) bool) (first *guest) {
	for g := range d.inside {
		if !of(g) {
			continue
		}
		if first == nil || g.rank() < first.rank() || g.rank() == first.rank() && g.since.Before(first.since) {
			first = g
		}
	}
	return first
}

// makeRoom closes the connection that is first to be closed. It returns false if there is none.
func (d *Door) makeRoom() bool {
	d.mu.Lock()
	g := d.surplus(0)
	d.remove(g)
	d.mu.Unlock()
	if g != nil {
		d.shut([]*guest{g}, Evicted)
	}
	return g != nil
}

// remove forgets a connection. The lock is held.
func (d *Door) remove(g *guest) {
	if _, there := d.inside[g]; !there {
		return
	}
	delete(d.inside, g)
	if d.of[g.from]--; d.of[g.from] == 0 {
		delete(d.of, g.from)
	}
}

// shut closes connections, without the lock: each close waits for its goroutine to let go of the descriptor.
func (d *Door) shut(all []*guest, why Reason) {
	for _, g := range all {
		d.closed[why].Add(1)
		_ = g.Close()
	}
}

// watch has idle connections closed early while half of the connections are taken. The lock is held.
func (d *Door) watch(most int) {
	if d.sweeping || 2*len(d.inside) < most {
		return
	}
	d.sweeping = true
	time.AfterFunc(sweepEvery, d.sweep)
}

func (d *Door) sweep() {
	d.mu.Lock()
	d.sweeping = false
	var out []*guest
	if most := max(1, d.most()); 2*len(d.inside) >= most {
		for g := range d.inside {
			if g.rank() == 0 && time.Since(g.since) >= shortIdle {
				out = append(out, g)
			}
		}
		for _, g := range out {
			d.remove(g)
		}
		d.watch(most)
	}
	d.mu.Unlock()
	d.shut(out, Idle)
}

// Serve has a server tell the door about its connections. Its handler is set before, and its listener is the door's.
func (d *Door) Serve(s *http.Server) {
	s.ConnState = d.state
	s.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, guestKey{}, guestOf(c))
	}
	h := s.Handler
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g, ok := r.Context().Value(guestKey{}).(*guest)
		if ok && g != nil {
			d.answers(g, 1)
			defer d.answers(g, -1)
		}
		h.ServeHTTP(w, r)
	})
}

type guestKey struct{}

// guestOf returns the guest of a connection of the server; nil: it did not come through the door.
func guestOf(c net.Conn) *guest {
	if secure, ok := c.(interface{ NetConn() net.Conn }); ok { // of crypto/tls
		c = secure.NetConn()
	}
	g, _ := c.(*guest)
	return g
}

func (d *Door) answers(g *guest, more int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if g.busy += more; g.busy == 0 { // net/http writes the end of the response now
		g.since = time.Now()
	}
}

// state is the ConnState of the server.
func (d *Door) state(c net.Conn, s http.ConnState) {
	g := guestOf(c)
	if g == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch s {
	case http.StateActive, http.StateIdle:
		g.left.Store(1 << 62)
		g.idle, g.since = s == http.StateIdle, time.Now()
	case http.StateClosed, http.StateHijacked:
		d.remove(g)
	}
}

var errTooLarge = errors.New("too many bytes before the first request")

func (g *guest) Read(p []byte) (int, error) {
	n, err := g.Conn.Read(p)
	if n > 0 && g.left.Add(-int64(n)) < 0 && err == nil {
		g.door.closed[TooLarge].Add(1)
		return 0, errTooLarge
	}
	return n, err
}

// Address returns the IPv4 address of a client, or its IPv6 /64 network, since an IPv6 host can use any number of addresses in its network.
func Address(remote string) netip.Prefix {
	host, _, _ := net.SplitHostPort(remote)
	a, _ := netip.ParseAddr(host)
	a = a.Unmap().WithZone("")
	bits := 32
	if a.Is6() {
		bits = 64
	}
	p, _ := a.Prefix(bits) // without an address: the zero prefix, which no client has
	return p
}

// Open returns the number of connections.
func (d *Door) Open() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.inside)
}

// Serve serves until ctx is canceled. Answers in progress then have so long to finish.
func Serve(ctx context.Context, s *http.Server, l net.Listener, grace time.Duration) error {
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	leave, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	err := s.Shutdown(leave)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.Close()
	}
	if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}
