package live

import (
	"net"
	"net/http"
	"time"
)

// Bounds on who watches. A viewer holds the ticks that it has not taken yet, which are shared, until they are too many.
const (
	mostViewers = 64
	mostPending = 16               // ticks
	takeTime    = 15 * time.Second // for one event: the first one can be long, and the network a phone's
	lastTime    = time.Second      // for what is pending when Run ends
)

// A viewer is one stream of events.
type viewer struct {
	from   string      // host
	number int         // later ones have larger ones
	events chan []byte // closed when the viewer is removed from the Board
	stream *http.ResponseController
}

// join adds a viewer and gives it all of the page to begin with. It is false when there are too many, or Run is over.
func (b *Board) join(from string, stream *http.ResponseController) (v *viewer, first []byte, joined bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over || len(b.viewers) >= mostViewers && !b.makeRoom(from) {
		return nil, nil, false
	}
	b.joined++
	v = &viewer{from: from, number: b.joined, events: make(chan []byte, mostPending), stream: stream}
	b.viewers[v] = struct{}{}
	b.watching.Add(1)
	return v, event("all", b.all()), true
}

// makeRoom lets the oldest viewer go of the host that has most of them, for one from a host that has fewer. The lock is held.
func (b *Board) makeRoom(from string) bool {
	hosts := map[string]int{}
	for v := range b.viewers {
		hosts[v.from]++
	}
	var oldest *viewer
	for v := range b.viewers {
		n := hosts[v.from]
		if oldest == nil || n > hosts[oldest.from] || n == hosts[oldest.from] && v.number < oldest.number {
			oldest = v
		}
	}
	if hosts[oldest.from] <= hosts[from] {
		return false
	}
	b.drop(oldest, 0)
	return true
}

// leave is the last thing that a stream does.
func (b *Board) leave(v *viewer) {
	b.mu.Lock()
	delete(b.viewers, v)
	b.mu.Unlock()
	b.watching.Done()
}

// send gives an event to every viewer and removes those that are too far behind. The lock is held.
func (b *Board) send(event []byte) {
	for v := range b.viewers {
		select {
		case v.events <- event:
		default:
			b.drop(v, 0)
		}
	}
}

// drop ends a stream within the grace given, also one that is in the middle of a write. The lock is held: the stream
// has not left yet, so the deadline is that of its own connection.
func (b *Board) drop(v *viewer, grace time.Duration) {
	delete(b.viewers, v)
	close(v.events)
	_ = v.stream.SetWriteDeadline(time.Now().Add(grace)) // net/http's connections all have one
}

// end lets everybody go, and returns when they have gone.
func (b *Board) end() {
	b.mu.Lock()
	b.over = true
	for v := range b.viewers {
		b.drop(v, lastTime)
	}
	b.mu.Unlock()
	b.watching.Wait()
}

// event is data as the stream of server-sent events has them.
func event(name string, data []byte) []byte {
	e := make([]byte, 0, len(data)+32)
	e = append(append(append(e, "event: "...), name...), "\ndata: "...)
	return append(append(e, data...), "\n\n"...)
}

// serveEvents is a stream that lasts until the viewer goes, is too slow, or Run ends.
func (b *Board) serveEvents(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // nginx would hold events back
	if r.Method == http.MethodHead {
		return
	}
	stream := http.NewResponseController(w)
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	v, next, joined := b.join(host, stream)
	if !joined {
		w.Header().Set("Retry-After", "5")
		http.Error(w, "replayd is stopping, or has all the viewers that it can serve.", http.StatusServiceUnavailable)
		return
	}
	defer b.leave(v)
	for open := true; open; {
		if b.write(v, w, next) != nil {
			return
		}
		select {
		case next, open = <-v.events:
		case <-r.Context().Done():
			return
		}
	}
}

// write sends one event within its own deadline; the server's would be that of the whole answer.
func (b *Board) write(v *viewer, w http.ResponseWriter, event []byte) error {
	b.mu.Lock()
	_, watching := b.viewers[v]
	if watching { // else it was dropped, and has the deadline that it keeps
		_ = v.stream.SetWriteDeadline(time.Now().Add(takeTime))
	}
	b.mu.Unlock()
	if _, err := w.Write(event); err != nil {
		return err
	}
	return v.stream.Flush()
}
