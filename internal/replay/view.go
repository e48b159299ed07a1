package replay

import (
	"time"

	"replayd/internal/dispatch"
	"replayd/internal/limits"
	"replayd/internal/measure"
	"replayd/internal/schedule"
)

// A view is what pages show of a runner: they never take the runner's lock, so no page waits for the replay. It does not change. Positions are
// computed from it when a page is read.
type view struct {
	moment
	guard limits.Breaker // a copy; zero while no limit is open
}

// A moment is the part of a view that can be compared.
type moment struct {
	over, stopped, paused, warming bool

	plays  bool // a loop was begun, which the next four fields describe
	idle   bool // all rows of the loop were read and none is left
	loop   schedule.Loop
	period time.Duration
	clock  dispatch.Clock
}

// show publishes the view if it has changed. The lock is held. It runs in each step, before the writes, so it allocates only for changes: a loop
// begins or ends, the clock was set, a pause, and each judgment while the guard is open.
func (r *Runner) show() {
	v := view{moment: moment{over: r.over, stopped: r.d.Leaves(), paused: r.d.IsPaused(), warming: r.phase == measure.Warmup}}
	if l := r.d.Playing(); l != nil {
		v.plays, v.idle, v.loop, v.period, v.clock = true, l.Over(), l.Loop, l.Period, l.Clock()
	}
	if b := r.guard.breaker; b.State() != limits.Closed {
		v.guard = *b
	}
	r.showNext()
	if now := r.shown.Load(); now == nil || now.moment != v.moment || !now.guard.SameAs(&v.guard) {
		changed := v // v itself stays on the stack
		r.shown.Store(&changed)
	}
}

// showNext publishes the next due instant. The lock is held. The row that the feed waits for is due after those that were
// read, and before a turn that waits for longer.
func (r *Runner) showNext() {
	at := r.d.NextDue()
	if at.IsZero() || !r.awaited.IsZero() && r.awaited.Before(at) {
		at = r.awaited
	}
	next := int64(0)
	if !at.IsZero() {
		next = at.UnixNano()
	}
	if r.next.Load() != next {
		r.next.Store(next)
	}
}

// due returns the next due instant; zero: unknown or none.
func (r *Runner) due() time.Time {
	if next := r.next.Load(); next != 0 {
		return time.Unix(0, next).UTC()
	}
	return time.Time{}
}

// State returns the runner's current state. It takes no lock.
func (r *Runner) State() State {
	v, c := r.shown.Load(), r.w.clock()
	plays := v.plays && !v.warming // a loop of the warm-up is none of the plan
	now := v.clock.Planned(c.Own)  // planned instant, by the loop's own clock
	s := State{Phase: Running, Due: r.due()}
	switch {
	case v.over:
		s.Phase = Over
	case v.stopped:
		s.Phase = Draining
	case v.paused:
		s.Phase = Paused
	case v.warming:
		s.Phase = Warming
	case !plays || now.Before(v.loop.Start) || v.idle:
		s.Phase = Waiting
	case v.guard.State() != limits.Closed:
		s.Phase, s.Reason = Guarded, v.guard.Words(c.Own)
	}
	if !plays {
		return s
	}
	s.Loop, s.Period, s.Skew = v.loop.Number, v.period, v.clock.Skew(c)
	s.Position = r.w.Plan.Position(v.loop, now)
	if now.Before(v.loop.Start) {
		s.Next = v.loop.Start.Sub(now)
	} else if next, ok := r.w.Plan.Next(v.loop, now); ok && s.Phase != Over && !r.w.Plan.Closed() {
		s.Next = next.Start.Sub(now)
	}
	return s
}

// gauges returns, at the instant of a scrape, the trace time that is played, the offset of the wall clock from the loop's own clock, and
// the next due instant.
func (r *Runner) gauges() (position, skew time.Duration, due time.Time) {
	v, c := r.shown.Load(), r.w.clock()
	return r.w.Plan.Position(v.loop, v.clock.Planned(c.Own)), v.clock.Skew(c), r.due()
}

// Turn identifies what the holder of the lock does that the workload's runners share: it changes with each holder, and with each action of a long
// step. If it stays, the replay stands still. 0: nobody holds the lock.
func (r *Runner) Turn() uint64 {
	moves := r.mu.moves.Load()
	if turns := r.mu.turns.Load(); turns&1 == 1 {
		return turns + moves // neither ever falls
	}
	return 0
}

// Reach waits for the lock that the workload's runners share. After it has returned, Pause and Retire wait for nobody who held it before.
func (r *Runner) Reach() {
	r.mu.Lock()
	defer r.mu.Unlock()
}
