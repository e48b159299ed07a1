package web

import (
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"replayd/internal/visitors"
)

// Limits of responses being written. One address gets at most half of the slots, so that other clients do not wait for
// it. Half is enough for several scrapers behind one proxy, because a response is written in milliseconds. If no slot
// is free, the client that has not read for the longest time loses its slot.
const (
	maxWritten = 8
	maxOfOne   = 4
	maxWaiting = 256                    // maximum number of requests that wait for a slot
	maxWaitOne = 32                     // maximum per address
	stillTime  = 250 * time.Millisecond // without progress, while others wait
	longTime   = 5 * time.Second        // for a whole response, while others wait
	stuckTime  = 5 * time.Second        // without progress, even if no client waits
	admitEvery = 50 * time.Millisecond
	partBytes  = 64 << 10 // of a response, written without another look at the time
)

// A writeLimit limits the number of responses that are written at once.
type writeLimit struct {
	mu      sync.Mutex
	writing []*visitor
	waiting []*visitor // in the order in which they came
	timer   *time.Timer
}

// A visitor is a request whose response is being written or waits for a slot.
type visitor struct {
	from   netip.Prefix
	stream *http.ResponseController
	admit  chan struct{} // closed when the visitor gets a slot
	end    time.Time     // deadline of the whole response
	began  time.Time     // start of the write
	moved  time.Time     // time of the latest progress
}

// hand writes a response until end at the latest. It closes the connection if the client does not read for some
// seconds, or sooner if others wait.
func (d *writeLimit) hand(w http.ResponseWriter, r *http.Request, s *bufferedResponse, end time.Time) {
	v := &visitor{from: visitors.Address(r.RemoteAddr), stream: http.NewResponseController(w), admit: make(chan struct{}), end: end}
	if !d.enter(v) {
		w.Header().Set("Retry-After", "1")
		writeText(w, http.StatusServiceUnavailable, "replayd answers as many requests as it can.")
		return
	}
	defer d.leave(v)
	maps.Copy(w.Header(), s.head)
	w.Header().Set("Content-Length", strconv.Itoa(s.body.Len())) // makes a truncated response detectable
	d.moves(v)
	w.WriteHeader(s.status)
	for part := range slices.Chunk(s.body.Bytes(), partBytes) {
		if !d.moves(v) {
			return
		}
		if _, err := w.Write(part); err != nil {
			return
		}
	}
	d.moves(v) // time for the data that net/http still buffers
}

// enter waits for a slot. It returns false if too many requests wait.
func (d *writeLimit) enter(v *visitor) bool {
	d.mu.Lock()
	if len(d.waiting) >= maxWaiting || ownOf(d.waiting, v.from) >= maxWaitOne {
		d.mu.Unlock()
		return false
	}
	d.waiting = append(d.waiting, v)
	d.admitWaiting()
	d.mu.Unlock()
	<-v.admit
	return true
}

func (d *writeLimit) leave(v *visitor) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if i := slices.Index(d.writing, v); i >= 0 {
		d.writing = slices.Delete(d.writing, i, i+1)
		d.admitWaiting()
	}
}

// moves extends the write deadline for the next part. It returns false if the visitor has lost its slot.
func (d *writeLimit) moves(v *visitor) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.Contains(d.writing, v) {
		return false
	}
	v.moved = time.Now()
	by := v.moved.Add(stuckTime)
	if v.end.Before(by) {
		by = v.end
	}
	_ = v.stream.SetWriteDeadline(by) // all connections of net/http support it
	return true
}

// admitWaiting assigns slots to waiting visitors, first come, first served, and schedules itself again while some
// still wait. The lock is held.
func (d *writeLimit) admitWaiting() {
	d.waiting = slices.DeleteFunc(d.waiting, func(v *visitor) bool {
		if !d.hasSlot(v.from) {
			return false
		}
		v.began = time.Now()
		v.moved = v.began
		d.writing = append(d.writing, v)
		close(v.admit)
		return true
	})
	if len(d.waiting) == 0 || d.timer != nil {
		return
	}
	d.timer = time.AfterFunc(admitEvery, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.timer = nil
		d.admitWaiting()
	})
}

// hasSlot reports whether there is a slot for a client from an address. If none is free, it takes the slot of the
// visitor that has not read for the longest time, if that visitor is too slow. An address with all its slots in use
// can lose only its own. The lock is held.
func (d *writeLimit) hasSlot(from netip.Prefix) bool {
	own := ownOf(d.writing, from)
	if own < maxOfOne && len(d.writing) < maxWritten {
		return true
	}
	last := -1
	for i, v := range d.writing {
		if (own < maxOfOne || v.from == from) && (last < 0 || v.moved.Before(d.writing[last].moved)) {
			last = i
		}
	}
	v, now := d.writing[last], time.Now()
	if now.Sub(v.moved) < stillTime && now.Sub(v.began) < longTime {
		return false
	}
	_ = v.stream.SetWriteDeadline(now) // the visitor has not left yet, so the connection is its own
	d.writing = slices.Delete(d.writing, last, last+1)
	return true
}

// ownOf counts the visitors from an address.
func ownOf(all []*visitor, from netip.Prefix) (n int) {
	for _, v := range all {
		if v.from == from {
			n++
		}
	}
	return n
}
