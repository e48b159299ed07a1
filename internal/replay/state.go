package replay

import (
	"time"

	"replayd/internal/dispatch"
	"replayd/internal/limits"
	"replayd/internal/measure"
)

// A Phase says in a word what a runner does.
type Phase string

// Phases of a runner.
const (
	Warming  Phase = "warming"  // the first rows go out to warm the server up
	Waiting  Phase = "waiting"  // for the target's first answer, or for the next loop
	Running  Phase = "running"  // rows go out at their instants
	Paused   Phase = "paused"   // rows that fall due are dropped; of a closed plan none falls due
	Guarded  Phase = "guarded"  // they are, because a limit of the guard is open
	Draining Phase = "draining" // nothing new is sent, what is in flight may end
	Over     Phase = "over"     // nothing is left
)

// Cut reports whether the runner was stopped before its plan was over and its last request had ended.
func (r *Runner) Cut() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cut
}

// A State is where a runner stands.
type State struct {
	Phase    Phase
	Reason   string // which limits of the guard are open, as a text, in this phase; else ""
	Loop     int64
	Position time.Duration // trace time that is being played
	Next     time.Duration // until the next loop begins; 0 where none follows or none has begun
	Period   time.Duration // from the loop's start to the next one's
	Skew     time.Duration // wall clock − the loop's own time
}

// State tells where the runner stands now.
func (r *Runner) State() State {
	r.mu.Lock()
	s, l, c := State{Phase: Running}, r.d.Playing(), readClock(r.w.Wall)
	if r.phase == measure.Warmup {
		l = nil // it is not the plan's
	}
	var now time.Time // planned, by the loop's own time
	if l != nil {
		now = l.Clock().Planned(c.Own)
	}
	switch {
	case r.over:
		s.Phase = Over
	case r.d.IsStopped():
		s.Phase = Draining
	case r.d.IsPaused():
		s.Phase = Paused
	case r.phase == measure.Warmup:
		s.Phase = Warming
	case l == nil || now.Before(l.Start) || l.Over():
		s.Phase = Waiting
	case r.breaker.State() != limits.Closed:
		s.Phase, s.Reason = Guarded, r.breaker.Words(c.Own)
	}
	if l == nil {
		r.mu.Unlock()
		return s
	}
	played := l.Loop
	s.Loop, s.Period, s.Skew = l.Number, l.Period, l.Clock().Skew(c)
	r.mu.Unlock() // the pacer need not wait for what cron has to compute
	s.Position = r.w.Plan.Position(played, now)
	if now.Before(played.Start) {
		s.Next = played.Start.Sub(now)
	} else if next, ok := r.w.Plan.Next(played, now); ok && s.Phase != Over && !r.w.Plan.Closed() {
		s.Next = next.Start.Sub(now)
	}
	return s
}

// gauges tells, at the instant of a scrape, the trace time that is being played, and how far the wall clock has moved
// away from the loop's own time.
func (r *Runner) gauges() (position, skew time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l, c := r.d.Playing(), readClock(r.w.Wall)
	return r.w.Plan.Position(l.Loop, l.Clock().Planned(c.Own)), l.Clock().Skew(c)
}

// Pause drops what waits and what falls due until Pause(false); what is in flight goes on, and so does the schedule. Of a
// closed plan nothing falls due meanwhile, and nothing is dropped.
// False: nothing changes by it.
func (r *Runner) Pause(paused bool) bool {
	r.mu.Lock()
	if r.d.IsPaused() == paused {
		r.mu.Unlock()
		return false
	}
	r.w.Count.Paused(paused)
	given := r.step(dispatch.Event{Kind: dispatch.Pause, On: paused}, nil)
	r.mu.Unlock()
	r.start(given)
	return true
}

// Paused says whether it is.
func (r *Runner) Paused() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.d.IsPaused()
}

// SetDrain changes how long requests in flight may go on after a stop.
func (r *Runner) SetDrain(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.w.Drain = d
}

func (r *Runner) drain() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.w.Drain
}

// Retire ends the runner at a planned instant: rows due before it go out, later ones are left to its successor, whose
// Begin is the same instant. What waits then is dropped, and what is in flight may end.
func (r *Runner) Retire(at time.Time) {
	r.mu.Lock()
	r.until = at
	given := r.step(dispatch.Event{Kind: dispatch.Retire, At: at}, nil)
	r.mu.Unlock()
	r.start(given)
}

// Played is a planned instant: all rows before it have come due, or are the runner's that was before. Where the wall clock was set
// back it can lie ahead of that.
func (r *Runner) Played() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	if played := r.d.Played(); !played.Before(r.w.Begin) {
		return played
	}
	return r.w.Begin.Round(0)
}
