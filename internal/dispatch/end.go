package dispatch

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"replayd/internal/measure"
)

// bound sets the begin of the plan and, for a length above 0, its end.
func (d *Dispatcher) bound(from time.Time, length time.Duration, now Clock) {
	begins := d.planClock(now).At(from)
	if d.closed != nil {
		d.closed.opens = begins
	}
	if length > 0 {
		d.ends = begins.Add(length)
	}
}

// retire hands over at an instant: rows due before it are sent, later rows are the successor's.
func (d *Dispatcher) retire(at time.Time) {
	d.until = at
	if d.closed == nil {
		d.forgetUpcoming(func(r *Row) bool { return d.beyond(r.loop.clock.Planned(r.Due.At)) })
	}
	d.unsettled = true
}

// beyond reports whether a row planned for an instant belongs to the successor.
func (d *Dispatcher) beyond(planned time.Time) bool {
	switch {
	case d.until.IsZero():
		return false
	case d.FollowsWall:
		return !planned.Round(0).Before(d.until)
	case d.playing == nil: // no loop was begun, and none will be
		return true
	}
	return !d.playing.clock.At(planned).Before(d.until)
}

// retires returns the instant of the handover on the monotonic clock; zero: there is none.
func (d *Dispatcher) retires(now Clock) time.Time {
	switch {
	case d.until.IsZero():
		return time.Time{}
	case !d.FollowsWall:
		return d.until
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
	if end := d.retires(now); !end.IsZero() && !d.stopped && !d.retired {
		if !fired || now.Own.Before(end) {
			at = earlier(at, end)
		} else {
			d.leave(now.Own)
		}
	}
	return at
}

// leave ends what is not the successor's. In an open loop, rows that wait for a lane are dropped. In a closed loop, rows of
// sessions that have not begun are left to the successor. Turns of sessions in progress go on.
func (d *Dispatcher) leave(now time.Time) {
	if d.retired {
		return
	}
	d.do(Action{Kind: Retired})
	d.retired, d.unsettled = true, true
	d.Slots.called += d.called.n
	if d.closed == nil {
		d.dropWaiting(measure.Shutdown, now)
		return
	}
	for r := d.upcoming.first; r != nil; r = d.upcoming.first {
		if r.session != nil && !r.session.begun.IsZero() {
			d.release(r, now)
			continue
		}
		d.left = append(d.left, r)
		d.forget(r)
	}
	for _, l := range d.loops {
		for r := l.undue.first; r != nil; {
			next := l.undue.after(r)
			if r.session.begun.IsZero() {
				d.left = append(d.left, r)
				d.forget(r)
			}
			r = next
		}
	}
	slices.SortStableFunc(d.left, func(a, b *Row) int { return cmp.Compare(a.Seq, b.Seq) })
}

// Left returns the rows that a closed loop leaves to its successor, in the order of reading. It has them from Retired on.
func (d *Dispatcher) Left() []*Row { return d.left }

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
		if d.closed != nil {
			d.takePlaces(-d.closed.active)
		}
		d.do(Action{Kind: Done})
	}
}

// stop drops the rows that were due and not sent. It forgets the rows that were not due yet: they were never expected.
func (d *Dispatcher) stop() {
	d.stopped, d.unsettled = true, true
	if d.retired {
		d.dropUndue()
	}
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

// dropUndue drops the turns of sessions that a handover has cut: the successor does not have them.
func (d *Dispatcher) dropUndue() {
	lists := []*list{&d.called}
	for _, n := range slices.Sorted(maps.Keys(d.loops)) {
		lists = append(lists, &d.loops[n].undue)
	}
	for i := 0; i < len(lists); {
		switch r := lists[i].first; {
		case r == nil:
			i++
			continue
		case r.Filtered:
			d.filter(r, d.now)
		default:
			d.giveUp(r, measure.Shutdown, d.now)
		}
		i = 0 // rows after it may be called now
	}
}

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
