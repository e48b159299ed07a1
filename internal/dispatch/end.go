package dispatch

import (
	"maps"
	"slices"
	"time"

	"replayd/internal/measure"
)

// bound sets the begin of the plan and, for a length above 0, its end.
func (d *Dispatcher) bound(from time.Time, length time.Duration, now Clock) {
	if d.closed != nil {
		d.closed.opens = now.At(from)
	}
	if length > 0 {
		d.ends = now.At(from).Add(length)
	}
}

// retire hands over at a planned instant: rows due before it are sent, later rows are the successor's.
func (d *Dispatcher) retire(at time.Time, now Clock) {
	d.until = at.Round(0)
	d.retiresAt = now.At(d.until)
	d.forgetUpcoming(func(r *Row) bool { return d.beyond(r.loop.clock.Planned(r.Due.At)) })
	d.unsettled = true
}

// beyond reports whether a row planned for an instant belongs to the successor.
func (d *Dispatcher) beyond(planned time.Time) bool {
	switch {
	case d.until.IsZero():
		return false
	case !d.FollowsWall && d.playing != nil:
		return !d.playing.clock.At(planned).Before(d.retiresAt)
	}
	return !planned.Round(0).Before(d.until)
}

// retires returns the instant of the handover on the monotonic clock; zero: there is none.
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

// end handles the end of the plan, those of loops, and the handover once they are reached. It returns the earliest of at and those instants.
// All wait for a step that has fired: rows due before them come due first, and are not lost to an event in between.
func (d *Dispatcher) end(now Clock, at time.Time, fired bool) time.Time {
	if !d.ends.IsZero() && !d.stopped && !d.exhausted {
		if !fired || now.Own.Before(d.ends) {
			at = earlier(at, d.ends)
		} else {
			d.exhausted = true
			d.forgetUndue()
			d.do(Action{Kind: ReadOn}) // the feed finds that the plan has ended
		}
	}
	for len(d.bounded) > 0 && !d.stopped {
		l := d.bounded[0]
		if !fired || now.Own.Before(l.ends) {
			at = earlier(at, l.ends)
			break
		}
		d.bounded = d.bounded[1:]
		d.overrun(l)
	}
	if end := d.retires(now); !end.IsZero() && !d.stopped {
		if !fired || now.Own.Before(end) {
			at = earlier(at, end)
		} else {
			d.do(Action{Kind: Retired})
		}
	}
	return at
}

// feedEnded records that no more rows will be read: after an error, a stop or the end of the plan.
func (d *Dispatcher) feedEnded(failed bool) {
	d.fed = true
	for _, l := range d.loops {
		l.cut = l.cut || !l.read && failed
		l.read = true
	}
	d.unsettled = true
}

// settle reports loops that are over, and Done when no row is left.
func (d *Dispatcher) settle() {
	if !d.unsettled || d.done {
		return
	}
	d.unsettled = false
	left := 0
	for _, n := range slices.Sorted(maps.Keys(d.loops)) {
		l := d.loops[n]
		if l.read && !l.endsReported {
			l.endsReported = true
			d.endIdle(l)
		}
		left += l.open
		if l.Over() {
			delete(d.loops, n)
			d.do(Action{Kind: LoopDone, Loop: l, On: !d.stopped && !l.cut && (l.played || !l.joined)})
		}
	}
	if left == 0 && (d.fed || d.stopped) {
		d.done = true
		d.do(Action{Kind: Done})
	}
}

// stop drops the rows that were due and not sent. It forgets the rows that were not due yet: they were never expected.
func (d *Dispatcher) stop() {
	d.stopped, d.unsettled = true, true
	d.forgetUndue()
	for r := d.waiting.first; r != nil; r = d.waiting.first {
		d.visits++
		d.Slots.taken--
		d.drop(r, measure.Shutdown)
	}
	for r := d.delayed.front(); r != nil; r = d.delayed.front() {
		d.drop(r, measure.Shutdown)
	}
	for r := d.blocked.first; r != nil; r = d.blocked.first {
		d.visits++
		d.drop(r, measure.Shutdown)
	}
	for _, l := range d.loops {
		l.read = true
	}
}

// forgetUndue forgets all rows that are not due yet.
func (d *Dispatcher) forgetUndue() {
	lists := []*list{&d.upcoming, &d.called}
	for _, n := range slices.Sorted(maps.Keys(d.loops)) {
		lists = append(lists, &d.loops[n].undue)
	}
	for _, l := range lists {
		for r := l.first; r != nil; r = l.first {
			d.visits++
			r.loop.cut = true
			d.forget(r)
		}
	}
}
