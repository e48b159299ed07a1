// Package dispatch decides which request goes when. It is the whole of a replay's state between a row that was read and the
// end of its request: open and closed loops, sessions, what is held back, dropped, built and sent.
//
// A Dispatcher is a plain state machine. Step is told what has happened and when, and says what is to be done. It has no lock,
// reads no clock, waits for nobody and calls nobody: the same events give the same actions.
//
// Where to find what:
//
//	admit.go    may this row go now? Pause, guard, budget, lane, message, in this order
//	open.go     rows come due at their instants
//	closed.go   rows come due when a lane is free
//	session.go  the turns of a conversation go one after the other
//	build.go    whose message is built next, within a bound of bytes
//	rejoin.go   the process stood still, or the clock was set
//	end.go      drops, the plan's end, handing over, stop
package dispatch

import (
	"time"

	"replayd/internal/limits"
	"replayd/internal/measure"
	"replayd/internal/schedule"
)

// Config is what a Dispatcher is made by.
type Config struct {
	Lanes       int           // most requests in flight
	Closed      bool          // a row comes due when a lane is free, and not at an instant
	HoldLanes   bool          // in a closed loop a conversation keeps its lane while a delay between its turns runs
	DropLate    bool          // a row that finds no free lane at its instant is dropped at once
	MaxWait     time.Duration // longest wait for a lane; 0: without limit
	Carry       bool          // turns hold what the server answered to those before
	Ahead       int           // bytes of messages built and not yet sent
	FollowsWall bool          // the plan's instants are the wall clock's, also when that is set
	Paused      bool          // begins paused

	Breaker  *limits.Breaker // nil: no guard
	Budget   limits.Budget
	Spending *limits.Spending // what the workload has spent; nil without a budget
	Slots    *Slots           // shared with the dispatchers that this one takes over from and those that take over from it
}

// Slots count the requests of a workload that are in flight or about to go, over all reloads: a closed loop that takes over
// leaves as many lanes idle as the ones before it still use.
type Slots struct{ taken int }

// A Dispatcher holds every row between the plan and the end of its request. Make it with New. Whoever uses it holds one lock
// for it, and for all that share its Slots, Spending and Breaker.
type Dispatcher struct {
	Config
	lists
	messages
	missed
	ending
	closed  *circuit // nil: an open loop
	loops   map[int64]*Loop
	playing *Loop     // of the row that came due last; nil before the first loop
	played  time.Time // planned, just after the last row that came due
	free    int       // lanes that would take a row now
	flying  int       // rows that lanes have
	paused  bool      // what falls due is dropped; of a closed loop nothing falls due
	judged  uint64    // order of the latest reading that the guard was judged by
	out     []Action  // of the running Step
}

// New makes a dispatcher of nothing.
func New(c Config) *Dispatcher {
	d := &Dispatcher{Config: c, loops: map[int64]*Loop{}, free: c.Lanes, paused: c.Paused}
	if d.Slots == nil {
		d.Slots = new(Slots)
	}
	if c.Closed {
		d.MaxWait = 0 // nothing waits for a lane
		d.closed = &circuit{pool: 2*c.Lanes + 16}
	}
	return d
}

// Step takes note of what has happened at an instant, and says what is to be done for it, in this order. The slice is the
// dispatcher's again at the next Step. Its last action is WakeAt.
func (d *Dispatcher) Step(now Clock, e Event) []Action {
	if cap(d.out) > keptActions {
		d.out = nil
	}
	clear(d.out)
	d.out = d.out[:0]
	moved := d.align(now)
	if e.Kind != Ended { // an end is to be seen by the guard first
		moved = d.judge(now.Own, e.Seen) || moved
	}
	d.take(now, e)
	if e.Kind != Look && e.Kind != Written {
		d.assign(now.Own)
	}
	if moved || d.stirs(e, now.Own) {
		d.fire(now.Own)
		d.assign(now.Own)
	}
	if e.Kind == Tick && d.lag > 0 { // once, however many found it out before the instants are played again
		d.do(Action{Kind: Rejoined, Why: Stopped, Lag: d.lag})
		d.lag = 0
	}
	at := d.end(now, d.next())
	d.settle()
	d.build()
	d.do(Action{Kind: WakeAt, At: at})
	return d.out
}

// stirs says of an event whether a row may come due by it. Else that is left to the instant of the last WakeAt: where this process
// stood still, whoever is awake first does not let rows come due one by one.
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

// take takes note of an event.
func (d *Dispatcher) take(now Clock, e Event) {
	switch e.Kind {
	case Tick, Look:
	case LoopBegun:
		d.begin(e.Plan, now, e.Period, e.Salt)
	case RowRead:
		d.read(e.Loop, e.Row)
	case LoopRead:
		e.Loop.read = true
		d.unsettled = true
	case FeedEnded:
		d.feedEnded(e.Failed)
	case LetGo:
		d.letGo()
	case Built:
		d.built(e.Row, e.Message)
	case Written:
		d.giveBack(e.Row)
	case Refused:
		d.refuse(e.Row, e.Message.Err, now.Own)
	case Ended:
		d.ended(now.Own, e)
	case Pause:
		d.pause(e.On, now.Own)
	case Retire:
		d.retire(e.At, now)
	case Bounds:
		d.bound(e.At, e.Period, now)
	case Stop:
		d.stop()
	}
}

func (d *Dispatcher) do(a Action) { d.out = append(d.out, a) }

// begin makes room for the rows of a loop. One that was left may be entered again.
func (d *Dispatcher) begin(l schedule.Loop, now Clock, period time.Duration, salt time.Time) {
	d.astray = false
	lp := d.loops[l.Number]
	if lp == nil {
		lp = &Loop{sessions: map[sessionKey]*session{}, Salt: l.Start}
		d.loops[l.Number] = lp
	}
	lp.Loop, lp.clock, lp.Period, lp.read = l, now, period, false
	if !salt.IsZero() {
		lp.Salt = salt
	}
	if d.playing == nil {
		d.enter(lp)
	}
}

// enter notes the loop that is played.
func (d *Dispatcher) enter(l *Loop) {
	if d.playing != l {
		d.playing = l
		d.do(Action{Kind: LoopEntered, Loop: l})
	}
}

// Loop is the one of a number; nil where none of its rows is on its way and it is not being read.
func (d *Dispatcher) Loop(number int64) *Loop { return d.loops[number] }

// read takes a row of a loop from the plan.
func (d *Dispatcher) read(l *Loop, r *Row) {
	l.open++
	r.Offset = r.Due.At.Sub(l.Start)
	r.Due.At = l.clock.At(r.Due.At)
	r.loop, r.Planned, r.Ready = l, r.Due.At, r.Due.At
	d.weight += r.Weight
	if r.Filtered {
		d.upcoming.push(r)
		return
	}
	d.enroll(r)
	if d.closed != nil {
		d.join(r)
		return
	}
	d.upcoming.push(r)
	switch {
	case r.late: // when the turn before has ended
	case r.follows:
		d.behind.push(r)
	default:
		d.unbuilt.push(r)
	}
}

// next is the earliest instant at which fire has something to do; zero when nothing is on the calendar.
func (d *Dispatcher) next() (at time.Time) {
	earlier := func(t time.Time) {
		if at.IsZero() || t.Before(at) {
			at = t
		}
	}
	if d.closed != nil {
		d.closed.next(earlier)
	} else if r := d.upcoming.front(); r != nil {
		earlier(r.Due.At)
	}
	if r := d.delayed.front(); r != nil {
		earlier(r.Ready)
	}
	if r := d.waiting.front(); r != nil && d.MaxWait > 0 {
		earlier(r.Ready.Add(d.MaxWait))
	}
	return at
}

// fire moves everything whose instant has come by now.
func (d *Dispatcher) fire(now time.Time) {
	if d.closed != nil {
		d.fireClosed(now)
	} else {
		d.fireOpen(now)
	}
}

// assign hands rows that may go to lanes that are free.
func (d *Dispatcher) assign(now time.Time) {
	for d.free > 0 {
		r := d.first(now)
		if r == nil {
			return
		}
		d.free--
		d.flying++
		r.state = flying
		d.do(Action{Kind: Send, Row: r})
	}
}

// first takes the row that goes next out of the line; nil: none may go now.
func (d *Dispatcher) first(now time.Time) *Row {
	if d.closed != nil {
		return d.firstClosed(now)
	}
	return d.firstOpen(now)
}

// refuse drops a row that was to be sent and cannot be written: nothing went out, and its lane is free.
func (d *Dispatcher) refuse(r *Row, err error, now time.Time) {
	d.flying--
	d.Slots.taken--
	r.Message.Err = err
	d.dropTurn(r, measure.Invalid, now)
	d.free++
	if d.closed != nil {
		d.rest(now)
	}
}

// ended ends a row that a lane had.
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
	if d.Carry && r.session != nil && well {
		r.session.keep(e.Text)
	}
	d.flying--
	d.Slots.taken--
	r.state = gone
	d.endTrial(r, true)
	d.leave(r)
	if r.session != nil {
		r.session.ended = e.At
	}
	over := measure.SessionFailed
	if well {
		over = ""
	}
	d.endTurn(r, over, now)
	d.free++
	if d.closed != nil && (o == measure.ConnectFailed || o == measure.TimeoutConnect) {
		d.rest(now)
	}
}
