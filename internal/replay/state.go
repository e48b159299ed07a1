package replay

import (
	"time"

	"replayd/internal/limits"
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

// A State is where a runner stands.
type State struct {
	Phase    Phase
	Reason   string // in words, which limits of the guard are open while it is the phase; else ""
	Loop     int64
	Position time.Duration // trace time that is being played
	Next     time.Duration // until the next loop begins; 0 where none follows or none has begun
	Period   time.Duration // from the loop's start to the next one's
	Skew     time.Duration // wall clock − the loop's own time
}

// State tells where the runner stands now.
func (r *Runner) State() State {
	r.mu.Lock()
	s, l, c := State{Phase: Running}, r.playing, readClock(r.w.Wall)
	var now time.Time // planned, by the loop's own time
	if l != nil {
		now = l.clock.planned(c.own)
	}
	switch {
	case r.done:
		s.Phase = Over
	case r.stopped:
		s.Phase = Draining
	case r.queue.paused:
		s.Phase = Paused
	case r.warming != nil:
		s.Phase = Warming
	case l == nil || now.Before(l.Start) || l.read && l.open == 0:
		s.Phase = Waiting
	case r.queue.guard.State() != limits.Closed:
		s.Phase, s.Reason = Guarded, r.queue.guard.Words(c.own)
	}
	if l == nil {
		r.mu.Unlock()
		return s
	}
	played := l.Loop
	s.Loop, s.Period, s.Skew = l.Number, l.period, l.clock.skew(c)
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
	l, c := r.playing, readClock(r.w.Wall)
	return r.w.Plan.Position(l.Loop, l.clock.planned(c.own)), l.clock.skew(c)
}

// Pause drops what waits and what falls due until Pause(false); what is in flight goes on, and so does the schedule. Of a
// closed plan nothing falls due meanwhile, and nothing is dropped.
// False: nothing changes by it.
func (r *Runner) Pause(paused bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.queue.paused == paused {
		return false
	}
	r.queue.pause(paused, time.Now())
	r.w.Count.Paused(paused)
	if r.warming != nil {
		r.warming.Pause(paused)
	}
	r.settle()
	return true
}

// Paused says whether it is.
func (r *Runner) Paused() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.queue.paused
}

// SetDrain changes how long requests in flight may go on after a stop.
func (r *Runner) SetDrain(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.w.Drain = d
	if r.warming != nil {
		r.warming.SetDrain(d)
	}
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
	defer r.mu.Unlock()
	r.until = at.Round(0)
	r.leaves = readClock(r.w.Wall).at(r.until)
	if c := r.queue.closed; c != nil {
		c.until = r.retires()
	}
	if r.warming != nil {
		r.warming.Retire(at)
	}
	r.forgetUpcoming(func(it *item) bool { return r.beyond(it.loop.clock.planned(it.due.At)) })
	r.settle()
}

// beyond says of a planned instant whether it is another runner's.
func (r *Runner) beyond(planned time.Time) bool {
	switch {
	case r.until.IsZero():
		return false
	case !r.followsWall() && r.playing != nil:
		return !r.playing.clock.at(planned).Before(r.leaves)
	}
	return !planned.Round(0).Before(r.until)
}

// followsWall says whether the plan's instants are the wall clock's, also when that is set.
func (r *Runner) followsWall() bool {
	return r.queue.closed == nil && (r.w.Plan.FollowsWall() || !r.w.Epoch.IsZero())
}

// Played is a planned instant: all rows before it have come due, or are the runner's that was before. Where the wall clock was set
// back it can lie ahead of that.
func (r *Runner) Played() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.queue.played.Before(r.w.Begin) {
		return r.w.Begin.Round(0)
	}
	return r.queue.played
}

// untilOver lets go of what would come due when nothing does any more, with the lock held; else it gives the earlier of that
// instant and the one that the pacer would sleep for.
func (r *Runner) untilOver(now, at time.Time) time.Time {
	end := r.queue.ends
	if end.IsZero() || r.stopped {
		return at
	}
	if !now.Before(end) {
		if !r.ended {
			r.ended = true
			r.queue.end()
			r.move()
		}
		return at
	}
	if at.IsZero() || end.Before(at) {
		return end
	}
	return at
}

// untilRetired stops the taking of new work when the instant has come, with the lock held; else it gives the earlier of
// that instant and the one that the pacer would sleep for.
func (r *Runner) untilRetired(now, at time.Time) time.Time {
	end := r.retires()
	if end.IsZero() {
		return at
	}
	if !now.Before(end) {
		r.endWork()
		return at
	}
	if at.IsZero() || end.Before(at) {
		return end
	}
	return at
}

// retires is the instant from which on rows are another runner's, on its own clock; zero: they never are. The lock is held.
func (r *Runner) retires() time.Time {
	if r.until.IsZero() {
		return time.Time{}
	}
	if !r.followsWall() {
		return r.leaves
	}
	c := readClock(r.w.Wall)
	if r.playing != nil {
		c = r.playing.clock
	}
	return c.at(r.until)
}
