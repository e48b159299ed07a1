package replay

import (
	"container/heap"
	"time"

	"replayd/internal/limits"
	"replayd/internal/measure"
	"replayd/internal/schedule"
)

// A queue holds every item between the plan and the end of its request. It is a plain state machine: each
// step takes the instant it happens at, and the caller holds the runner's lock.
type queue struct {
	upcoming  fifo // in order of due; of a closed plan in its order, without turns that wait for an earlier one
	waiting   line // in order of ready
	delayed   turns
	called    fifo // of a closed plan: turns whose time has come, before new conversations
	loops     map[int64]*loop
	current   *loop // of the row that came due last
	building  fifo  // items whose bodies are to be built, in plan order
	behind    fifo  // the same for turns that wait for an earlier one
	replaced  int   // items in these two, at most, that are parked now
	free      int   // lanes that would take an item now
	flying    int   // items that lanes have
	weight    int   // bytes that rows which have not come due take
	carry     bool  // turns hold what the server answered to those before
	maxWait   time.Duration
	dropLate  bool          // overload: drop
	missed    time.Duration // how far behind this process may be before it rejoins; 0: any
	rejoined  time.Time     // what fell due until this instant is missed
	played    time.Time     // planned, just after the last row that came due
	lag       time.Duration // how far behind the queue was when it found that out by itself
	paused    bool          // what falls due is dropped; of a closed plan nothing falls due
	ends      time.Time     // nothing comes due from this instant on; zero: for ever
	closed    *circuit      // rows come due when a lane is free; nil: at their instants
	ready     func() error  // why no request can be written now; nil: one always can
	guard     *limits.Breaker
	purse     *purse
	count     counter
	named     func(*schedule.Due) string // gives requests their ids, made anew where they were parked; nil: they have none
	dropped   func(*item, measure.DropReason)
	forgotten func(*item) // hears of an item that never came due
	clipped   func(*item) // hears of one that is due and was cut
	emptied   func()      // a loop whose rows all came has none left
}

// counter is the part of measure.Workload that the queue's steps are counted on.
type counter interface {
	Expected(n int)
	Filtered(n int)
	Sent()
	Dropped(reason measure.DropReason)
}

// begin makes room for the rows of a loop. One that was left may be entered again.
func (q *queue) begin(l schedule.Loop, c clock) *loop {
	lp := q.loops[l.Number]
	if lp == nil {
		lp = &loop{sessions: map[sessionKey]*session{}, salt: l.Start}
		q.loops[l.Number] = lp
	}
	lp.Loop, lp.clock, lp.read = l, c, false
	return lp
}

// add takes a row of a loop from the plan.
func (q *queue) add(l *loop, it *item) {
	l.open++
	it.offset = it.due.At.Sub(l.Start)
	it.due.At = l.clock.at(it.due.At)
	it.loop, it.planned, it.ready = l, it.due.At, it.due.At
	q.weight += it.weight
	if it.filtered {
		q.upcoming.push(it)
		return
	}
	q.enroll(it)
	if q.closed != nil {
		q.join(it)
		return
	}
	q.upcoming.push(it)
	switch {
	case it.late: // when the turn before has ended
	case it.follows:
		q.behind.push(it)
	default:
		q.building.push(it)
	}
}

// next is the earliest instant at which fire has something to do; false when nothing is on the calendar.
func (q *queue) next() (time.Time, bool) {
	var at time.Time
	earlier := func(t time.Time) {
		if at.IsZero() || t.Before(at) {
			at = t
		}
	}
	if q.closed != nil {
		q.nextClosed(earlier)
	} else if it := q.upcoming.front(); it != nil {
		earlier(it.due.At)
	}
	if len(q.delayed) > 0 {
		earlier(q.delayed[0].ready)
	}
	if ready, ok := q.waiting.since(); ok && q.maxWait > 0 {
		earlier(ready.Add(q.maxWait))
	}
	return at, !at.IsZero()
}

// fire moves everything whose instant has come by now, and drops what has waited too long.
func (q *queue) fire(now time.Time) {
	if q.closed != nil {
		q.fireClosed(now)
		return
	}
	q.rejoin(now)
	for {
		up, turn := q.upcoming.front(), q.delayed.front()
		switch {
		case up != nil && !up.due.At.After(now) && (turn == nil || !turn.ready.Before(up.due.At)):
			q.upcoming.pop()
			q.current = up.loop
			q.played = up.loop.clock.planned(up.due.At).Add(1)
			if up.filtered {
				q.filter(up)
				continue
			}
			q.comeDue(up, now)
		case turn != nil && !turn.ready.After(now):
			heap.Pop(&q.delayed)
			q.makeReady(turn, now)
		default:
			q.expire(now)
			return
		}
	}
}

// filter counts an item that is too long.
func (q *queue) filter(it *item) {
	q.count.Filtered(1)
	q.dropped(it, measure.Filtered)
	q.forget(it)
}

// expect counts an item as due.
func (q *queue) expect(it *item) {
	if !it.expected {
		it.expected = true
		q.weight -= it.weight
		q.count.Expected(1)
		if it.clipped {
			q.clipped(it)
		}
	}
}

// over says of an instant whether nothing comes due any more.
func (q *queue) over(at time.Time) bool { return !q.ends.IsZero() && !at.Before(q.ends) }

// rejoin finds out whether this process did not run for a while: then what was to happen meanwhile is missed.
func (q *queue) rejoin(now time.Time) {
	if at, ok := q.next(); ok {
		q.rejoinAfter(at, now)
	}
}

// rejoinAfter does so by an instant that has come, unless it lies in a time that is known to be missed.
func (q *queue) rejoinAfter(at, now time.Time) {
	if q.missed > 0 && now.Sub(at) > q.missed && !q.isMissed(at) {
		q.lag = now.Sub(at)
		q.miss(now)
	}
}

// miss drops what waits, and lets whatever fell due until now be dropped when it comes.
func (q *queue) miss(now time.Time) {
	q.rejoined = now
	q.dropWaiting(measure.Missed, now)
}

func (q *queue) dropWaiting(reason measure.DropReason, now time.Time) {
	for it := q.waiting.pop(); it != nil; it = q.waiting.pop() {
		q.drop(it, reason)
		q.endTurn(it, reason, now)
	}
}

// isMissed says of an instant whether it lies in a time in which this process did not run.
func (q *queue) isMissed(at time.Time) bool { return !q.rejoined.IsZero() && !at.After(q.rejoined) }

// pause drops what waits and what falls due until the pause is over; what is in flight goes on. Of a closed plan nothing is
// dropped: it waits.
func (q *queue) pause(paused bool, now time.Time) {
	q.paused = paused
	if paused && q.closed == nil {
		q.dropWaiting(measure.Paused, now)
	}
}

// judge steps the guard, and drops what waits where that holds more back than before. False: nothing has changed.
func (q *queue) judge(now time.Time, l limits.Load, err error) bool {
	before := q.guard.State()
	changed := q.guard.Step(now, l, err)
	if q.guard.State() > before && q.closed == nil {
		q.dropWaiting(measure.Guarded, now)
	}
	return changed
}

// comeDue takes an item at its planned instant: behind the turn before it, or ready.
func (q *queue) comeDue(it *item, now time.Time) {
	s := it.session
	switch {
	case s != nil && s.over != "":
		q.giveUp(it, s.over)
	case q.isMissed(it.due.At):
		q.giveUp(it, measure.Missed)
	case s != nil && s.isLate(it): // it is due when its turn has come
		if s.busy {
			it.state = blocked
		} else {
			q.release(it, now)
		}
	case q.paused:
		q.giveUp(it, measure.Paused)
	case q.guard.Refuses(now):
		q.giveUp(it, measure.Guarded)
	case s == nil:
		q.makeReady(it, now)
	case s.busy:
		q.expect(it)
		it.state = blocked
	default:
		q.expect(it)
		q.release(it, now)
	}
}

// giveUp drops an item that has just come due, and with it the rest of its session: later turns would be sent without
// this one.
func (q *queue) giveUp(it *item, reason measure.DropReason) {
	q.expect(it)
	q.drop(it, reason)
	if it.session != nil {
		it.session.over = reason
	}
}

// makeReady lets an item wait for a lane from the instant at which it may be sent, which is hardly before now.
func (q *queue) makeReady(it *item, now time.Time) {
	if !it.expected { // its gap after the turn before was over later than planned
		if q.over(it.ready) {
			q.forget(it)
			return
		}
		it.due.At = it.ready
		q.expect(it)
	}
	if it.session != nil {
		it.session.due = it.due.At
	}
	q.rejoinAfter(it.ready, now) // the turn before may have ended while this process did not run
	it.state = waiting
	it.waited = q.waiting.len() >= q.free
	var why measure.DropReason
	switch {
	case it.err != nil:
		q.refuse(it, now)
		return
	case q.isMissed(it.ready):
		why = measure.Missed
	case q.paused:
		why = measure.Paused
	case !q.admit(it, now):
		why = measure.Guarded
	case it.waited && q.dropLate && q.purse.empty(it, now): // those before it will be refused, and lanes are free
		why = measure.Budget
	case it.waited && q.dropLate:
		why = measure.Overload
	default:
		q.wait(it)
		return
	}
	q.drop(it, why)
	q.endTurn(it, why, now)
}

// admit has the guard let an item through, as a trial where only single ones go.
func (q *queue) admit(it *item, now time.Time) (ok bool) {
	ok, it.trial = q.guard.Admit(now)
	return ok
}

// refuse drops an item whose message could not be built.
func (q *queue) refuse(it *item, now time.Time) {
	q.drop(it, measure.Invalid)
	q.endTurn(it, measure.Invalid, now)
}

// expire drops items that no lane took within max_wait.
func (q *queue) expire(now time.Time) {
	if q.maxWait <= 0 {
		return
	}
	for ready, ok := q.waiting.since(); ok && now.Sub(ready) >= q.maxWait; ready, ok = q.waiting.since() {
		it := q.waiting.pop()
		q.drop(it, measure.Overload)
		q.endTurn(it, measure.Overload, now)
	}
}

// take hands the first waiting item to a lane for which the budget has enough left, and drops those before it. Nil: there
// is none, or its body is not built yet.
func (q *queue) take(now time.Time) *item {
	if q.closed != nil {
		return q.takeClosed(now)
	}
	q.rejoin(now) // a lane may come back before the pacer does
	q.expire(now)
	for {
		it := q.takeBuilt()
		switch {
		case it == nil:
			return nil
		case it.err != nil:
			q.refuse(it, now)
		case q.purse.pay(it, now):
			q.fly(it)
			return it
		default:
			q.drop(it, measure.Budget)
			q.endTurn(it, measure.Budget, now)
		}
	}
}

func (q *queue) fly(it *item) {
	it.state = flying
	q.flying++
	q.count.Sent()
}

// finish ends an item that a lane had; its answer ended at an instant before now.
func (q *queue) finish(it *item, ok bool, end, now time.Time) {
	it.state = gone
	q.flying--
	q.endTrial(it, true)
	q.leave(it)
	if it.session != nil {
		it.session.ended = end
	}
	over := measure.SessionFailed
	if ok {
		over = ""
	}
	q.endTurn(it, over, now)
}
