package web

import (
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Bounds on answers that are being written. One address has at most half of the places, so that other clients do not wait for it.
// Half is enough for several scrapers behind one proxy, because an answer is written in milliseconds. If no place is free, the
// client that has not read for the longest time loses its place.
const (
	mostWritten  = 8
	mostOfOne    = 4
	mostWaiting  = 256                    // for a place
	mostWaitOne  = 32                     // of one address
	stillTime    = 250 * time.Millisecond // without a byte, where others wait
	longTime     = 5 * time.Second        // for a whole answer, where others wait
	stuckTime    = 5 * time.Second        // without a byte, also where no client waits
	lookForPlace = 50 * time.Millisecond
)

// A writeLimit hands out rendered answers.
type writeLimit struct {
	mu      sync.Mutex
	writing []*visitor
	waiting []*visitor // in the order in which they came
	looking *time.Timer
}

// A visitor is a request whose answer is being written, or waits for that.
type visitor struct {
	from   netip.Prefix
	stream *http.ResponseController
	admit  chan struct{} // closed when it has a place
	end    time.Time     // its last deadline
	began  time.Time     // to be written
	moved  time.Time     // when bytes went out last
}

// addressOf is who a request comes from: an IPv4 address, or the network of an IPv6 one, of which a host has as many as it likes.
func addressOf(r *http.Request) netip.Prefix {
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	a, _ := netip.ParseAddr(host)
	a = a.Unmap().WithZone("")
	bits := 32
	if a.Is6() {
		bits = 64
	}
	p, _ := a.Prefix(bits) // without an address: that of no client
	return p
}

// hand writes an answer until end at the latest. It is cut when none of it is read for some seconds, or sooner where others wait.
func (d *writeLimit) hand(w http.ResponseWriter, r *http.Request, s *bufferedResponse, end time.Time) {
	v := &visitor{from: addressOf(r), stream: http.NewResponseController(w), admit: make(chan struct{}), end: end}
	if !d.enter(v) {
		w.Header().Set("Retry-After", "1")
		say(w, http.StatusServiceUnavailable, "replayd answers as many requests as it can.")
		return
	}
	defer d.leave(v)
	maps.Copy(w.Header(), s.head)
	w.Header().Set("Content-Length", strconv.Itoa(s.bytes)) // an answer that is cut shows, and its connection ends
	d.moves(v)
	w.WriteHeader(s.status)
	for _, part := range s.parts {
		if !d.moves(v) {
			return
		}
		if _, err := w.Write(part); err != nil {
			return
		}
	}
	d.moves(v) // for what net/http still holds
}

// enter waits for a place. False: too many wait.
func (d *writeLimit) enter(v *visitor) bool {
	d.mu.Lock()
	if len(d.waiting) >= mostWaiting || ownOf(d.waiting, v.from) >= mostWaitOne {
		d.mu.Unlock()
		return false
	}
	d.waiting = append(d.waiting, v)
	d.look()
	d.mu.Unlock()
	<-v.admit
	return true
}

func (d *writeLimit) leave(v *visitor) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if i := slices.Index(d.writing, v); i >= 0 {
		d.writing = slices.Delete(d.writing, i, i+1)
		d.look()
	}
}

// moves gives a visitor time for the next part. It is false when its place has been given away.
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
	_ = v.stream.SetWriteDeadline(by) // net/http's connections all have one
	return true
}

// look gives places to those who wait, first come, first served, and looks again soon while some still do. The lock is held.
func (d *writeLimit) look() {
	d.waiting = slices.DeleteFunc(d.waiting, func(v *visitor) bool {
		if !d.place(v.from) {
			return false
		}
		v.began = time.Now()
		v.moved = v.began
		d.writing = append(d.writing, v)
		close(v.admit)
		return true
	})
	if len(d.waiting) == 0 || d.looking != nil {
		return
	}
	d.looking = time.AfterFunc(lookForPlace, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.looking = nil
		d.look()
	})
}

// place says whether there is room for a client from an address. It may be that of who reads nothing or takes long, of the same
// address where that has all that it may have. The lock is held.
func (d *writeLimit) place(from netip.Prefix) bool {
	own := ownOf(d.writing, from)
	if own < mostOfOne && len(d.writing) < mostWritten {
		return true
	}
	last := -1
	for i, v := range d.writing {
		if (own < mostOfOne || v.from == from) && (last < 0 || v.moved.Before(d.writing[last].moved)) {
			last = i
		}
	}
	v, now := d.writing[last], time.Now()
	if now.Sub(v.moved) < stillTime && now.Sub(v.began) < longTime {
		return false
	}
	_ = v.stream.SetWriteDeadline(now) // it has not left yet, so this is its own connection
	d.writing = slices.Delete(d.writing, last, last+1)
	return true
}

// ownOf counts those from an address.
func ownOf(all []*visitor, from netip.Prefix) (n int) {
	for _, v := range all {
		if v.from == from {
			n++
		}
	}
	return n
}
