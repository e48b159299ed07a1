package replay

import (
	"fmt"
	"log/slog"
	"math"
	"time"

	"replayd/internal/dispatch"
	"replayd/internal/measure"
)

// Pacer, lanes, builder and feed all work alike: the goroutine that has an event passes it to the dispatcher and
// carries out the actions itself. So the first goroutine that is awake gives a row to a lane.

// deliver passes an event to the dispatcher, with the engine's present load, and starts the lanes that get a request.
func (r *Runner) deliver(e dispatch.Event) {
	e.Seen = r.guard.read()
	r.act(e)
}

// act passes an event to the dispatcher, and starts the lanes that get a request.
func (r *Runner) act(e dispatch.Event) {
	r.mu.Lock()
	given := r.step(e, nil)
	r.mu.Unlock()
	r.start(given)
}

// step passes an event to the dispatcher and carries out its actions, with the lock held. It appends the lanes that get
// a request to given. The caller passes given to start after unlocking.
func (r *Runner) step(e dispatch.Event, given []*lane) []*lane {
	var refused []dispatch.Event
	now := r.w.clock()
	for _, a := range r.d.Step(now, e) {
		switch a.Kind {
		case dispatch.Send:
			if err := r.w.Client.Ready(); err != nil {
				refused = append(refused, dispatch.Event{Kind: dispatch.Refused, Row: a.Row, Message: dispatch.Message{Err: err}})
				continue
			}
			given = append(given, r.assign(a.Row, now.Own))
		case dispatch.Build:
			r.builder.next = build{a.Row, r.builder.buffers.get(a.Row.Reserved)} // start wakes the builder, after the writes
		case dispatch.Release:
			r.builder.buffers.give(a.Row.Message.Body, r.d.Ahead-r.d.Reserved())
			a.Row.Message.Body = nil
		case dispatch.Expect:
			r.expect(a.Row)
		case dispatch.Filter:
			r.count.Filtered(1)
			r.drop(measure.Filtered)
		case dispatch.Drop:
			r.count.Dropped(a.Reason)
			if r.w.Unsent != nil && r.phase == measure.Profiling {
				r.w.Unsent(&a.Row.Due, a.Reason, a.Row.SessionLost())
			}
			if a.Reason == measure.Invalid {
				r.log.notBuilt(a.Row)
			}
			r.drop(a.Reason)
		case dispatch.SideEnded:
			r.w.Sides.end(r.w.side(), a.Row, a.At, now.Own)
		case dispatch.SessionBegun:
			r.count.SessionBegun()
		case dispatch.SessionEnded:
			r.endSession(a.Session)
		case dispatch.LoopEntered:
			r.enter(a.Loop)
		case dispatch.LoopDone:
			if a.On {
				r.count.LoopCompleted()
			}
		case dispatch.GuardMoved:
			r.guard.show()
			r.lookAgain()
		case dispatch.GuardLacks:
			r.guard.lacks()
		case dispatch.BudgetSpell:
			r.log.budget(r.closed, &r.w.Budget, a.Spell, a.Bound)
		case dispatch.Crowded:
			r.log.crowded(a.On, a.Spell)
		case dispatch.TooLarge:
			r.log.tooLarge(a.Row)
		case dispatch.Slowed:
			r.log.slowed(&r.lanes.freed.req)
		case dispatch.Rejoined:
			r.log.note(slog.LevelWarn, rejoins[a.Why], fmt.Sprintf(", by %v", a.Lag.Round(time.Millisecond)), "jump", a.Lag)
		case dispatch.ReadOn:
			r.readOn()
		case dispatch.Retired:
			r.leave()
		case dispatch.Done:
			r.done()
		case dispatch.WakeAt:
			r.alarm.set(a.At)
		}
	}
	r.show()
	for _, e := range refused {
		given = r.step(e, given)
	}
	return given
}

func (r *Runner) expect(row *dispatch.Row) {
	r.count.Expected(1)
	if r.w.Due != nil && r.phase == measure.Profiling {
		r.w.Due(&row.Due, row.Loop().Clock().Planned(row.Due.At))
	}
	if row.Clipped && r.w.Clipped != nil && r.phase == measure.Profiling {
		r.w.Clipped.Add(1)
	}
}

func (r *Runner) endSession(s *measure.Session) {
	r.count.SessionEnded(s)
	if r.w.Session != nil && r.phase == measure.Profiling {
		r.w.Session(s)
	}
}

// assign gives a row to a free lane, or to one more.
func (r *Runner) assign(row *dispatch.Row, now time.Time) (l *lane) {
	if l = r.lanes.take(); l == nil {
		l = r.startLane()
	}
	r.count.Sent()
	l.next = handed{row, now}
	l.fill()
	l.req.Pod = l.wire.Aim(r.place(row))
	r.use.flying[l.req.Pod]++
	if r.echo != nil { // the router's token joins the message, whenever that was built
		l.wire.SendBack(r.echo, row.Token())
	}
	return l
}

// start starts the lanes that got a request. The calling thread is awake, so it writes the first bytes of each request
// itself. Waking a goroutine takes as long as a write, so lanes and builder are woken after the last write.
func (r *Runner) start(given []*lane) {
	for _, l := range given {
		r.writeFirst(l)
	}
	for _, l := range given {
		l.work <- struct{}{}
	}
	r.builder.wanted.Signal()
}

// done ends a stage without rows.
func (r *Runner) done() {
	if r.phase == measure.Warmup {
		close(r.warmed)
		if !r.d.IsStopped() {
			return
		}
	}
	r.end()
}

// end releases lanes, builder and feed at the end of the run. The lock is held.
func (r *Runner) end() {
	if r.over {
		return
	}
	r.over = true
	r.show()
	r.lanes.close()
	r.builder.wanted.Signal()
	r.log.end()
	r.readOn()
}

// readOn tells the feed to check again whether it may read.
func (r *Runner) readOn() { wake(r.moved) }

// wake wakes the reader of a channel with room for one.
func wake(reader chan<- struct{}) {
	select {
	case reader <- struct{}{}:
	default:
	}
}

// tick is the runner's step at an instant. It never blocks. It runs on the pacer, on a lane that does the pacer's work,
// or in runnerLock.Unlock. It returns false if the lock is taken; then the holder of the lock runs the step.
func (r *Runner) tick() (done bool) {
	e := dispatch.Event{Kind: dispatch.Tick, Seen: r.guard.read()}
	if !r.alarm.enter() {
		return false
	}
	var room [16]*lane // on the stack unless there are more
	given := r.step(e, room[:0])
	r.mu.release()
	r.start(given)
	return true
}

// enter reports the loop that is played. The lock is held.
func (r *Runner) enter(l *dispatch.Loop) {
	if !r.entered {
		r.entered = true
		r.show()
		r.count.SetClock(r.gauges)
	}
	args := []any{"loop", l.Number, "begins", l.Start.UTC().Format(time.RFC3339Nano), "period", l.Period}
	idle, known := r.w.Plan.Idle(l.Period)
	switch {
	case !known:
		idle = math.NaN()
	case idle > 0:
		args = append(args, "idle_ratio", math.Round(1e3*idle)/1e3)
	}
	r.count.LoopStarted(l.Number, l.Period, idle)
	level := slog.LevelInfo
	if r.closed || l.Period < time.Second { // such a loop can be over at once
		level = slog.LevelDebug
	}
	r.log.say(level, "entered loop", args...)
}

// drop reports a dropped row, unless it is the warm-up's.
func (r *Runner) drop(why measure.DropReason) {
	if r.phase != measure.Warmup {
		r.log.drop(why)
	}
}

// wakeOthers makes the other runners of the workload step: a slot may be free. The lock is held.
func (r *Runner) wakeOthers() {
	for _, one := range r.runners {
		if one != r && one.closed {
			one.alarm.want()
		}
	}
}
