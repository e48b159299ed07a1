package live

import (
	"fmt"
	"net"
	"net/http"
	"time"
)

// Limits of viewers. A viewer holds at most maxPending ticks that it has not read; viewers share the bytes of a tick.
const (
	maxViewers = 64
	maxPending = 16               // ticks
	takeTime   = 15 * time.Second // for one event: the first event can be long, and the network a phone's
	lastTime   = time.Second      // for pending events when Run ends
)

type viewer struct {
	from   string      // host
	number int         // later viewers have larger numbers
	events chan []byte // closed when the viewer is removed from the Board
	stream *http.ResponseController
}

// join adds a viewer and returns the whole page as its first event. It returns false if there are too many viewers or
// Run has ended.
func (b *Board) join(from string, stream *http.ResponseController) (v *viewer, first []byte, joined bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over || len(b.viewers) >= maxViewers && !b.makeRoom(from) {
		return nil, nil, false
	}
	b.joined++
	v = &viewer{from: from, number: b.joined, events: make(chan []byte, maxPending), stream: stream}
	b.viewers[v] = struct{}{}
	b.watching.Add(1)
	return v, event("all", b.all()), true
}

// makeRoom drops the oldest viewer of the host with the most viewers, for a viewer of a host with fewer. The caller
// holds the lock.
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

// leave is the last call of a stream.
func (b *Board) leave(v *viewer) {
	b.mu.Lock()
	delete(b.viewers, v)
	b.mu.Unlock()
	b.watching.Done()
}

// send sends an event to every viewer and drops viewers that are too far behind. The caller holds the lock.
func (b *Board) send(event []byte) {
	for v := range b.viewers {
		select {
		case v.events <- event:
		default:
			b.drop(v, 0)
		}
	}
}

// drop ends a stream within the given grace, also in the middle of a write. The caller holds the lock: the stream has
// not left yet, so the deadline is set on its own connection.
func (b *Board) drop(v *viewer, grace time.Duration) {
	delete(b.viewers, v)
	close(v.events)
	_ = v.stream.SetWriteDeadline(time.Now().Add(grace)) // all connections of net/http have deadlines
}

// end drops all viewers and returns when they have left.
func (b *Board) end() {
	b.mu.Lock()
	b.over = true
	for v := range b.viewers {
		b.drop(v, lastTime)
	}
	b.mu.Unlock()
	b.watching.Wait()
}

func event(name string, data []byte) []byte {
	return fmt.Appendf(nil, "event: %s\ndata: %s\n\n", name, data)
}

// serveEvents serves a stream until the viewer leaves, is too slow, or Run ends.
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

// write sends one event with a deadline of its own. The server's write deadline would cover the whole answer.
func (b *Board) write(v *viewer, w http.ResponseWriter, event []byte) error {
	b.mu.Lock()
	_, watching := b.viewers[v]
	if watching { // a dropped viewer keeps its deadline
		_ = v.stream.SetWriteDeadline(time.Now().Add(takeTime))
	}
	b.mu.Unlock()
	if _, err := w.Write(event); err != nil {
		return err
	}
	return v.stream.Flush()
}
