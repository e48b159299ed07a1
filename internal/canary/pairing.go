package canary

import (
	"cmp"
	"container/heap"
	"container/list"
	"slices"
	"time"
)

// A Half is one side's request of a row after its end.
type Half struct {
	Request
	Fault   bool      // the server kept the request from being sent in time: no free lane, its guard, an earlier failure of the session
	Void    Void      // replayd itself keeps the request from being compared; NotVoid: it does not
	Written bool      // the request was written
	Ready   time.Time // when the request could have been sent; zero: it was not sent

	Late time.Duration // how much later than that replayd itself sent it
}

// A Key identifies a row.
type Key struct {
	Trace int    // the version of the trace, from 0: rows of different ones are no pair
	ID    string // the row in the plan
}

// A Due is a row that has come due on a side.
type Due struct {
	Key
	At      time.Time     // by the monotonic clock
	Planned time.Time     // by the wall clock; both sides have the same instant, whatever becomes of the clock between their readings
	Gap     time.Duration // of a later turn: planned time since the turn before; else 0
}

// maxLate is the greatest share of a request's first latency that replayd may be late by itself.
const maxLate = 0.05

// maxDrift is the greatest distance between the two requests of a turn, as a share of the time since the turn before.
const maxDrift = 0.1

// maxOpen bounds the pairs in memory.
const maxOpen = 1 << 16

// remembered is how long a pair that was given up is known, so that what the other side says later does not open it again.
const remembered = 10 * time.Minute

// sameInstant is the greatest distance between the instants for which the two sides plan a row. Each reads the clocks for itself.
const sameInstant = time.Millisecond

// A Pairing puts the requests of two sides together. Each row that comes due on either side is passed on exactly once, as a pair: in the order of the instants
// at which the pairs could be sent. An event costs time in the logarithm of the open pairs. It is not safe for concurrent use.
type Pairing struct {
	add      func(*Pair)
	rows     map[Key][]*row // several of one key where the clock was set back
	order    list.List      // of rows, as they came
	holding  instants       // rows that may hold others back, each by an instant that is not later than its bound
	ended    instants       // complete pairs that an earlier row holds back
	last     time.Time      // instant of the latest pair that was passed on
	trace    int            // the present version
	counters *Counters
}

// A row is a pair that is not complete, or has been given up.
type row struct {
	Key
	seen    time.Time // when its first side came due
	gap     time.Duration
	halves  [2]Half
	at      [2]time.Time // due instants
	planned [2]time.Time
	due     [2]bool // the side has said that the row came due
	settled [2]bool
	given   Void // the pair is given up for this reason
	over    bool // the pair has ended; it is kept while a side may yet speak of the row
	awaited bool // it is in holding
	place   *list.Element
}

// NewPairing returns a pairing that passes pairs to add, and counts rows and requests.
func NewPairing(on *Counters, add func(*Pair)) *Pairing {
	return &Pairing{add: add, rows: map[Key][]*row{}, counters: on}
}

// Trace sets the present version of the trace. Pairs of others are void.
func (p *Pairing) Trace(version int) { p.trace = version }

// Due says that a row has come due on a side, which then settles it some time.
func (p *Pairing) Due(side Side, d Due, now time.Time) {
	r := p.find(d.Key, func(r *row) bool { return !r.due[side] })
	if r == nil {
		r = &row{Key: d.Key, gap: d.Gap, seen: now}
		r.place = p.order.PushBack(r)
		p.rows[d.Key] = append(p.rows[d.Key], r)
		p.counters.count(func(t *Totals) { t.Due++ })
	}
	r.due[side], r.at[side], r.planned[side] = true, d.At, d.Planned
	if !r.over {
		r.given = NotVoid
	}
	p.hold(r)
	if p.order.Len() > maxOpen {
		r := p.oldest()
		p.giveUp(r, VoidOverflow)
		p.forget(r)
	}
	p.pass()
}

// find returns the first row of a key for which something holds; nil: there is none.
func (p *Pairing) find(k Key, holds func(*row) bool) *row {
	if i := slices.IndexFunc(p.rows[k], holds); i >= 0 {
		return p.rows[k][i]
	}
	return nil
}

// Settle ends a side's request of a row. A row that is not known was given up long ago.
func (p *Pairing) Settle(side Side, k Key, h Half) {
	p.counters.count(func(t *Totals) {
		if h.Written {
			t.Requests[side].Sent++
		} else {
			t.Requests[side].Unsent++
		}
	})
	r := p.find(k, func(r *row) bool { return r.due[side] && !r.settled[side] })
	if r == nil {
		return
	}
	r.halves[side], r.settled[side] = h, true
	if r.over && r.settled == [2]bool{true, true} {
		p.forget(r)
	}
	p.complete(r)
	p.pass()
}

// complete ends a pair of which nothing more is expected.
func (p *Pairing) complete(r *row) {
	for side := range r.settled {
		if !r.settled[side] && (r.due[side] || r.given == NotVoid) {
			return
		}
	}
	p.end(r)
}

// giveUp makes a pair void that has not ended.
func (p *Pairing) giveUp(r *row, why Void) {
	if !r.over {
		r.given = why
		p.end(r)
	}
}

// end puts a pair among those that have ended.
func (p *Pairing) end(r *row) {
	if r.over {
		return
	}
	r.over = true
	at := r.bound()
	for _, h := range r.halves {
		at = later(at, h.Ready)
	}
	heap.Push(&p.ended, instant{at, r})
}

// bound is the instant before which a pair cannot be sent.
func (r *row) bound() time.Time { return later(r.at[Baseline], r.at[Candidate]) }

// holds says whether later pairs wait for the row. They do not wait where one side has dropped it and the other one comes to it some time.
func (r *row) holds() bool {
	for side := range r.due {
		if !r.due[side] && r.settled[1-side] && !r.halves[1-side].Written {
			return false
		}
	}
	return !r.over
}

// hold lets later pairs wait for the row.
func (p *Pairing) hold(r *row) {
	if !r.awaited && r.holds() {
		r.awaited = true
		heap.Push(&p.holding, instant{r.bound(), r})
	}
}

// pass passes on the pairs that have ended and that no earlier one holds back.
func (p *Pairing) pass() {
	for len(p.ended) > 0 {
		next := p.ended[0]
		if first, some := p.first(); some && first.Before(next.at) {
			break
		}
		heap.Pop(&p.ended)
		r := next.row
		pair := r.pair(p.trace)
		p.last = later(p.last, next.at)
		pair.At = p.last
		if r.settled == [2]bool{true, true} {
			p.forget(r)
		}
		p.add(pair)
	}
}

// first returns the instant from which on pairs are held back; false: none is.
func (p *Pairing) first() (at time.Time, some bool) {
	for len(p.holding) > 0 {
		next := &p.holding[0]
		switch bound := next.row.bound(); {
		case !next.row.holds():
			next.row.awaited = false
			heap.Pop(&p.holding)
		case next.at.Before(bound):
			next.at = bound
			heap.Fix(&p.holding, 0)
		default:
			return bound, true
		}
	}
	return time.Time{}, false
}

// forget removes a row of which nothing more is expected.
func (p *Pairing) forget(r *row) {
	p.order.Remove(r.place) // nothing, once it is not there
	p.rows[r.Key] = slices.DeleteFunc(p.rows[r.Key], func(other *row) bool { return other == r })
	if len(p.rows[r.Key]) == 0 {
		delete(p.rows, r.Key)
	}
}

// Close ends the wait for a side that has not said that a row came due there, if the other side said so before an instant: its runner has not begun, or
// has ended. A request that goes on is waited for, and so is a side that goes on alone after the other one has dropped the row.
func (p *Pairing) Close(before time.Time) {
	for e := p.order.Front(); e != nil; e = e.Next() {
		r := e.Value.(*row)
		if !r.seen.Before(before) {
			break
		}
		if r.due != [2]bool{true, true} && r.holds() {
			r.given = VoidOneSide
			p.complete(r)
		}
	}
	for p.order.Len() > 0 {
		r := p.oldest()
		if !r.over || r.due == [2]bool{true, true} || !r.seen.Before(before.Add(-remembered)) {
			break
		}
		p.forget(r)
	}
	p.pass()
}

func (p *Pairing) oldest() *row { return p.order.Front().Value.(*row) }

// CloseAll gives up all pairs that have not ended.
func (p *Pairing) CloseAll(why Void) {
	for e := p.order.Front(); e != nil; e = e.Next() {
		p.giveUp(e.Value.(*row), why)
	}
	p.pass()
}

// pair judges whether the two requests may be compared.
func (r *row) pair(trace int) *Pair {
	base, cand := &r.halves[Baseline], &r.halves[Candidate]
	pair := &Pair{ID: r.ID, Void: r.given}
	void := func(why Void, so bool) {
		if so && (pair.Void == NotVoid || why < pair.Void) {
			pair.Void = why
		}
	}
	for side, h := range r.halves {
		pair.Requests[side] = h.Request
		pair.Requests[side].Bad = h.Bad || h.Fault
		void(h.Void, h.Void != NotVoid)
		// A request that failed has no latencies. It is as late as one that did not fail would be: void pairs have their share of the bad requests.
		first := cmp.Or(h.TTFT, h.E2E, r.halves[1-side].TTFT, r.halves[1-side].E2E)
		void(VoidLate, first > 0 && float64(h.Late) > maxLate*float64(first))
	}
	void(VoidTraceChanged, r.Trace < trace)
	// Where a side has failed, the other one goes on alone, at its own instants.
	if r.due == [2]bool{true, true} && !base.Fault && !cand.Fault {
		void(VoidApart, r.at[0].Sub(r.at[1]).Abs() > sameInstant && r.planned[0].Sub(r.planned[1]).Abs() > sameInstant)
	}
	if r.gap > 0 && !base.Ready.IsZero() && !cand.Ready.IsZero() {
		void(VoidApart, float64(base.Ready.Sub(cand.Ready).Abs()) > maxDrift*float64(r.gap))
	}
	return pair
}

// An instant is a row's place in a heap.
type instant struct {
	at  time.Time
	row *row
}

// Instants are a heap with the earliest one first.
type instants []instant

func (h instants) Len() int           { return len(h) }
func (h instants) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h instants) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push and Pop are heap.Interface's.
func (h *instants) Push(x any) { *h = append(*h, x.(instant)) }

func (h *instants) Pop() any {
	last := len(*h) - 1
	it := (*h)[last]
	(*h)[last] = instant{}
	*h = (*h)[:last]
	return it
}
