package dispatch

import (
	"container/heap"
	"time"

	"replayd/internal/measure"
)

// ending is how a plan ends.
type ending struct {
	ends      time.Time // nothing comes due from this instant on; zero: for ever
	until     time.Time // planned instant from which on rows are another dispatcher's; zero: none are
	retiresAt time.Time // the same by this process' own clock when it was told: what holds where the plan does not follow the wall clock
	exhausted bool      // nothing comes due any more, by ends
	astray    bool      // the plan is to be entered anew where the clock is
	fed       bool      // no more rows will be read
	stopped   bool      // nothing new is sent
	done      bool      // nothing is left and nothing will come
	unsettled bool      // a loop may be over
}

// drop ends a row that was due and is not sent.
func (d *Dispatcher) drop(r *Row, reason measure.DropReason) {
	r.state = gone
	d.endTrial(r, false)
	d.refund(r)
	d.do(Action{Kind: Drop, Row: r, Reason: reason})
	d.giveBack(r)
	d.leave(r)
}

// forget ends a row that never came due.
func (d *Dispatcher) forget(r *Row) {
	r.state = gone
	d.weight -= r.Weight
	d.giveBack(r)
	d.leave(r)
}

// leave takes a row that has ended off its loop and its session.
func (d *Dispatcher) leave(r *Row) {
	r.loop.open--
	d.part(r)
	d.unsettled = d.unsettled || r.loop.Over()
}

// over says of an instant whether nothing comes due any more.
func (d *Dispatcher) over(at time.Time) bool { return !d.ends.IsZero() && !at.Before(d.ends) }

// bound lays the two ends of what comes due on the monotonic clock.
func (d *Dispatcher) bound(from time.Time, length time.Duration, now Clock) {
	if d.closed != nil {
		d.closed.opens = now.At(from)
	}
	if length > 0 {
		d.ends = now.At(from).Add(length)
	}
}

// retire ends it at a planned instant: rows due before it go out, later ones are left to its successor.
func (d *Dispatcher) retire(at time.Time, now Clock) {
	d.until = at.Round(0)
	d.retiresAt = now.At(d.until)
	d.forgetUpcoming(func(r *Row) bool { return d.Beyond(r.loop.clock.Planned(r.Due.At)) })
	d.unsettled = true
}

// Beyond says of a planned instant whether its row is another dispatcher's.
func (d *Dispatcher) Beyond(planned time.Time) bool {
	switch {
	case d.until.IsZero():
		return false
	case !d.FollowsWall && d.playing != nil:
		return !d.playing.clock.At(planned).Before(d.retiresAt)
	}
	return !planned.Round(0).Before(d.until)
}

// retires is the instant from which on rows are another dispatcher's, on the monotonic clock; zero: they never are.
func (d *Dispatcher) retires(now Clock) time.Time {
	switch {
	case d.until.IsZero():
		return time.Time{}
	case !d.FollowsWall:
		return d.retiresAt
	case d.playing != nil:
		now = d.playing.clock
	}
	return now.At(d.until)
}

// end lets go of what would come due when nothing does any more, and tells when all is its successor's. It gives the earlier of
// these instants and another.
func (d *Dispatcher) end(now Clock, at time.Time) time.Time {
	earlier := func(end time.Time) {
		if at.IsZero() || end.Before(at) {
			at = end
		}
	}
	if !d.ends.IsZero() && !d.stopped {
		switch {
		case now.Own.Before(d.ends):
			earlier(d.ends)
		case !d.exhausted:
			d.exhausted = true
			d.forgetUndue()
			d.do(Action{Kind: ReadOn}) // for it to find that nothing is wanted
		}
	}
	if end := d.retires(now); !end.IsZero() {
		if now.Own.Before(end) {
			earlier(end)
		} else {
			d.do(Action{Kind: Retired})
		}
	}
	return at
}

// feedEnded takes note that no more rows will be read, because of an error or a stop or because the plan is over.
func (d *Dispatcher) feedEnded(failed bool) {
	d.fed = true
	for _, l := range d.loops {
		l.cut = l.cut || !l.read && failed
		l.read = true
	}
	d.unsettled = true
}

// settle finds out which loops are over, and whether anything is left.
func (d *Dispatcher) settle() {
	if !d.unsettled || d.done {
		return
	}
	d.unsettled = false
	left := 0
	for n, l := range d.loops {
		left += l.open
		if l.Over() {
			delete(d.loops, n)
			d.do(Action{Kind: LoopDone, Loop: l, On: !d.stopped && !l.cut})
		}
	}
	if left == 0 && (d.fed || d.stopped) {
		d.done = true
		d.do(Action{Kind: Done})
	}
}

// stop drops whatever was due and not sent; what was not due yet was never expected and goes silently.
func (d *Dispatcher) stop() {
	d.stopped, d.unsettled = true, true
	d.forgetUndue()
	for r := d.unwait(); r != nil; r = d.unwait() {
		d.drop(r, measure.Shutdown)
	}
	for _, r := range d.delayed {
		d.drop(r, measure.Shutdown)
	}
	d.delayed = nil
	for _, l := range d.loops {
		for _, s := range l.sessions {
			turns := s.turns
			s.turns = nil
			for _, r := range turns {
				if r.state != gone {
					d.drop(r, measure.Shutdown)
				}
			}
		}
		l.read = true
	}
}

// forgetUndue lets go silently of everything that is not due yet.
func (d *Dispatcher) forgetUndue() {
	var undue []*Row
	for _, list := range []*fifo{&d.upcoming, &d.called} {
		for r := list.pop(); r != nil; r = list.pop() {
			undue = append(undue, r)
		}
	}
	due := d.delayed[:0]
	for _, r := range d.delayed {
		if r.expected {
			due = append(due, r)
		} else {
			undue = append(undue, r)
		}
	}
	clear(d.delayed[len(due):])
	d.delayed = due
	heap.Init(&d.delayed)
	for _, l := range d.loops {
		for _, s := range l.sessions {
			for _, r := range s.turns {
				if r.state == blocked && !r.expected {
					undue = append(undue, r)
				}
			}
		}
	}
	for _, r := range undue {
		r.loop.cut = true
		d.forget(r)
	}
}
