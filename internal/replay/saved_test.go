package replay

import (
	"bytes"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A savedBook stores the arguments of Saved.
type savedBook struct {
	mu      sync.Mutex
	bodies  map[string][]byte // by X-Request-Id
	offsets map[string]time.Duration
}

func newSavedBook() *savedBook {
	return &savedBook{bodies: map[string][]byte{}, offsets: map[string]time.Duration{}}
}

func (s *savedBook) save(sent Sent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := "w/" + sent.Due.ID()
	s.bodies[id], s.offsets[id] = bytes.Clone(sent.Body), sent.Offset
}

// Saved is called with the body that the server receives, once for each request of the plan and never for the warm-up.
// This also holds for a request that is retried because its kept connection was closed.
func TestSaved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		book, f := newSavedBook(), &fake{ttft: 10 * time.Millisecond, closeAfter: 2}
		b := newBench(t, every(5, time.Second), once, f, func(w *Workload) { w.Saved, w.Warmup.Requests = book.save, 2 })
		b.run(t, t.Context(), t.Context())
		want(t, "saved", len(book.bodies), 5)
		retried := 0
		for _, r := range b.kept.all {
			want(t, r.ID, string(book.bodies[r.ID]), string(f.bodies[r.ID]))
			want(t, r.ID+" offset", book.offsets[r.ID], time.Duration(r.Row)*time.Second)
			if r.Retried {
				retried++
			}
		}
		if retried == 0 {
			t.Error("no request was sent again: the hook was not put to the test")
		}
	})
}

// A request that was never written is not saved. The fourth request was written, on a connection that had been closed.
func TestSavedWithoutAServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		book, f := newSavedBook(), &fake{}
		b := newBench(t, every(6, time.Second), once, f, func(w *Workload) { w.Saved = book.save })
		time.AfterFunc(lead+2500*time.Millisecond, func() { f.refuse.Store(true); f.cutAll() })
		b.run(t, t.Context(), t.Context())
		want(t, "saved", fmt.Sprint(book.offsets), "map[w/0/0:0s w/0/1:1s w/0/2:2s w/0/3:3s]")
	})
}

// If the wall clock is set while a request is in flight, the request is still saved with its offset in the loop.
func TestSavedWhileTheClockIsSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		book, clock := newSavedBook(), &wallClock{}
		b := newBench(t, every(3, 2*time.Second), once, &fake{ttft: 10 * time.Millisecond, dials: 700 * time.Millisecond}, func(w *Workload) {
			w.Saved, w.Wall, w.Epoch = book.save, clock.now, clock.now().Add(time.Second)
		})
		time.AfterFunc(1350*time.Millisecond, func() { clock.step(-1500 * time.Millisecond) })
		b.run(t, t.Context(), t.Context())
		want(t, "saved", fmt.Sprint(book.offsets), "map[w/0/0:0s w/0/1:2s w/0/2:4s]")
	})
}

// In a closed loop the saved offset is the time at which the request came due.
func TestSavedOfAClosedLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		book := newSavedBook()
		b := newBench(t, rows(2), closedLoop, &fake{ttft: time.Second}, func(w *Workload) { w.Saved, w.Lanes, w.Rows = book.save, 1, 4 })
		time.AfterFunc(lead+1500*time.Millisecond, func() { b.Pause(true) })
		time.AfterFunc(lead+5*time.Second, func() { b.Pause(false) })
		b.run(t, t.Context(), t.Context())
		want(t, "saved", fmt.Sprint(book.offsets), "map[w/0/0:0s w/0/1:1s w/1/0:5s w/1/1:6s]")
	})
}
