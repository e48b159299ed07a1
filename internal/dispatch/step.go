package dispatch

import (
	"time"

	"replayd/internal/measure"
)

// Step takes an event and its instant, and returns the actions that follow, in order. The slice is valid until the next Step. The
// last action is WakeAt.
func (d *Dispatcher) Step(now Clock, e Event) []Action {
	if cap(d.out) > keptActions {
		d.out = nil
	}
	clear(d.out)
	d.out, d.sends, d.now = d.out[:0], false, now.Own
	d.runs(now.Own)
	moved := d.align(now)
	if e.Kind != Ended { // the guard sees its outcome first
		moved = d.judge(now.Own, e.Seen) || moved
	}
	d.handle(now, e)
	if e.Kind != Poll && e.Kind != Written {
		d.assign(now.Own)
	}
	fired := moved || d.stirs(e, now.Own)
	if fired {
		d.fire(now.Own)
		d.assign(now.Own)
	}
	if e.Kind == Tick && d.lag > 0 { // once, however many events came before this tick
		d.do(Action{Kind: Rejoined, Why: Stopped, Lag: d.lag})
		d.lag = 0
	}
	if d.sated && d.upcoming.n <= aheadRows/2 {
		d.sated = false
		d.do(Action{Kind: ReadOn})
	}
	at := d.end(now, d.next(), fired)
	if early := d.wakes; !fired && early.After(now.Own) && (at.IsZero() || early.Before(at)) {
		at = early // the retry of a closed loop is not put off by the end of each request
	}
	d.wakes = at
	d.settle()
	if !d.sends { // the caller writes first, and then asks by Poll for the next message to build
		d.build(now.Own)
	}
	d.do(Action{Kind: WakeAt, At: at})
	return d.out
}

// stirs says whether rows may come due at an event. At other events that is left to the Tick at the last WakeAt: after a standstill
// of the process, the first event to come would else let the backlog come due in part.
func (d *Dispatcher) stirs(e Event, now time.Time) bool {
	switch e.Kind {
	case Tick, Pause, Retire, Bounds:
		return true
	case RowRead:
		return d.closed != nil || !e.Row.Due.At.After(now)
	}
	return false
}

// keptActions is how many actions the slice of a Step has room for when it is kept.
const keptActions = 1 << 12

func (d *Dispatcher) handle(now Clock, e Event) {
	switch e.Kind {
	case Tick, Poll:
	case LoopBegun:
		d.offPlan = d.offPlan && e.On // the reader may not know yet that the clock was set
		d.beginLoop(e.Plan, e.At, now, e.Period, e.Salt)
	case RowRead:
		d.read(e.Loop, e.Row)
		if d.offPlan { // the reader does not know yet: the row would stay before all those of the present instant
			d.letGo()
		}
	case LoopRead:
		e.Loop.read = true
		d.unsettled = true
	case FeedEnded:
		d.feedEnded(e.Failed)
	case ReaderHeld:
		d.rejoin(now.Own) // a standstill is detected before heldUntil hides it
		d.heldUntil = now.Own
	case LetGo:
		d.letGo()
	case Built:
		d.built(e.Row, e.Message)
	case Written:
		d.giveBack(e.Row)
	case Refused:
		e.Row.Message.Err = e.Message.Err
		d.refuse(e.Row, measure.Invalid, now.Own)
	case Lacked:
		d.refuse(e.Row, measure.Missed, now.Own)
	case Ended:
		d.ended(now.Own, e)
	case BothEnded:
		e.Row.turn.coupled, e.Row.turn.ended = false, e.At
		d.endTurn(e.Row, "", now.Own)
	case Pause:
		d.pause(e.On, now.Own)
	case Retire:
		d.retire(e.At)
	case Bounds:
		d.bound(e.At, e.Period, now)
	case Stop:
		if d.closed == nil {
			d.fireOpen(now.Own.Add(-1)) // rows due before the stop count as expected
		}
		d.stop()
	}
}

// fire makes rows and turns due whose instant has come.
func (d *Dispatcher) fire(now time.Time) {
	if d.closed != nil {
		d.fireClosed(now)
	} else {
		d.fireOpen(now)
	}
}

// assign gives rows that may be sent to free lanes.
func (d *Dispatcher) assign(now time.Time) {
	for d.free > 0 {
		r := d.first(now)
		if r == nil {
			return
		}
		d.free--
		d.flying++
		d.to(r, flying)
		d.uncount(r)
		d.reportCrowd(now, false)
		d.do(Action{Kind: Send, Row: r})
		d.sends = true
	}
}

// first removes and returns the row that is sent next; nil: none may be sent now.
func (d *Dispatcher) first(now time.Time) *Row {
	if d.closed != nil {
		return d.firstClosed(now)
	}
	return d.firstOpen(now)
}

// refuse drops a row that a lane was to send and that could not be written. Nothing was sent, and the lane is free.
func (d *Dispatcher) refuse(r *Row, reason measure.DropReason, now time.Time) {
	d.flying--
	d.Slots.taken--
	d.dropTurn(r, reason, now)
	d.free++
	if d.closed != nil {
		d.pauseLane(now.Add(connectPause))
	}
}

func (d *Dispatcher) ended(now time.Time, e Event) {
	r, o := e.Row, e.Outcome
	d.giveBack(r)
	d.correct(r, o, e.Usage)
	if d.Breaker != nil {
		if o != measure.Cancelled && o != measure.Aborted { // they say nothing of the target
			d.Breaker.Health.Ended(now, o.Failed())
		}
		d.judge(now, e.Seen)
	}
	well := o == measure.OK || o == measure.Cancelled // a user may go on after either
	if d.History && r.session != nil && well {
		r.session.storeAnswer(r.turn, e.Text)
	}
	if r.session != nil {
		r.loop.updateAffinity(r, e)
	}
	d.flying--
	d.Slots.taken--
	d.to(r, gone)
	d.endTrial(r, true)
	d.account(r, e)
	d.detach(r)
	if r.turn != nil {
		r.turn.ended = e.At
	}
	switch {
	case !well:
		d.sideEnded(r, time.Time{})
		over := measure.SessionFailed
		if o == measure.Aborted { // replayd's own doing, as is what follows from it
			over = measure.Missed
		}
		d.endTurn(r, over, now)
	case d.Coupled && r.turn != nil:
		r.turn.coupled = true
		d.sideEnded(r, e.At)
	default:
		d.endTurn(r, "", now)
	}
	d.free++
	if d.closed != nil {
		d.slowDown(e, now)
	}
}
