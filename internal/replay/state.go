package replay

import (
	"time"

	"replayd/internal/dispatch"
)

// A Phase names the current activity of a runner.
type Phase string

// Phases of a runner.
const (
	Warming  Phase = "warming"  // the first rows are sent to warm up the server
	Waiting  Phase = "waiting"  // for the target's first answer or for the next loop
	Running  Phase = "running"  // rows are sent at their instants
	Paused   Phase = "paused"   // due rows are dropped; in a closed loop no row falls due
	Guarded  Phase = "guarded"  // due rows are dropped, because a limit of the guard is open
	Draining Phase = "draining" // no row is sent; requests in flight may end
	Over     Phase = "over"     // the runner has ended
)

// Cut reports whether the runner was stopped before its plan was over and its last request had ended.
func (r *Runner) Cut() bool { return r.cut.Load() }

// A State is the state of a runner.
type State struct {
	Phase    Phase
	Reason   string // which limits of the guard are open, as a text, if Phase is Guarded
	Loop     int64
	Position time.Duration // trace time that is played
	Next     time.Duration // time until the next loop begins; 0 if there is none or none has begun
	Period   time.Duration // start of a loop to start of the next loop
	Skew     time.Duration // wall clock − the loop's own clock
	Due      time.Time     // planned instant at which the next row is due; zero: unknown or none
}

// Pause drops waiting and due rows until Pause(false). Requests in flight continue, and so does the schedule. In a closed
// loop no row falls due while paused, and none is dropped. Pause returns false if it changes nothing.
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
	r.lookAgain()
	return true
}

// Paused reports whether the runner is paused.
func (r *Runner) Paused() bool { return r.shown.Load().paused }

// SetDrain sets how long requests in flight may continue after a stop.
func (r *Runner) SetDrain(d time.Duration) { r.drain.Store(int64(d)) }

// Played returns a planned instant. All rows before it have fallen due here or in the predecessor. After the wall clock was
// set back, it can be in the future.
func (r *Runner) Played() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	if played := r.d.Played(); !played.Before(r.w.Begin) {
		return played
	}
	return r.w.Begin.Round(0)
}
