package replay

import (
	"context"
	"time"

	"replayd/internal/dispatch"
	"replayd/internal/measure"
	"replayd/internal/schedule"
)

// Handover says when a workload begins, and from whom and where it takes over.
type Handover struct {
	Epoch time.Time // start of the first loop; zero: when the target has answered a probe, or after 5 s

	// Begin is when the workload takes over: the predecessor has the rows that are due earlier, and retires then. By the
	// wall clock, but by the clock of Place if there is one. Zero: it begins by itself.
	Begin time.Time

	Place  Place   // where in its plan it goes on; the zero Place: at the plan's begin, or where the wall clock is
	Part   int     // how often the workload has begun anew in this process: part of the ids of its requests
	Over   bool    // the plan was over before, and nothing is sent
	After  *Runner // the predecessor; its budget and guard go on. nil: none
	Paused bool    // begin paused
}

// A Place is where the plan of a runner stands that does not follow the wall clock.
type Place struct {
	Plan  *schedule.Plan // what the predecessor played; nil: the same plan
	Loop  schedule.Loop  // that is played
	Clock dispatch.Clock // maps the instants of the plan

	first time.Time // start of the first loop
	salt  time.Time // see Runner.salt
	left  *left     // of a closed plan: what its predecessor leaves

	// Where the predecessor has not found its own loop yet: its place, its plan, and its Begin.
	before *Place
	of     *schedule.Plan
	begin  time.Time
}

// loop returns the loop that is played at the place. plan has its rows.
func (p *Place) loop(plan *schedule.Plan) (schedule.Loop, error) {
	if p.before == nil {
		return p.Loop, nil
	}
	l, err := p.before.loop(plan)
	if err != nil {
		return l, err
	}
	l, _, _, err = plan.As(p.of).GoesOn(p.before.Plan, l, p.begin)
	return l, err
}

// left is what a closed loop leaves to its successor.
type left struct {
	known    chan struct{} // closed when the fields below are set
	progress               // zero: nothing was begun
	before   *left         // not nil: that of the runner before is to be taken, which this one has not
}

// A progress is how far a feed has read a closed plan.
type progress struct {
	loop   schedule.Loop
	passed int            // rows of it that the dispatcher has got
	rest   []schedule.Due // rows that the predecessor had read, and that are not passed to the dispatcher yet
}

// Place returns where the plan stands. begun is false where no row of the plan can have come due yet: the runner waits for
// its target, or warms it up. A plan that follows the wall clock has no place.
func (r *Runner) Place() (p Place, begun bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.d.Playing()
	switch {
	case r.phase == measure.Warmup:
		return Place{}, false
	case l == nil: // it has not taken over yet
		if p = r.w.Place; p.Plan != nil {
			before := p
			p.before, p.of, p.begin, p.Plan = &before, r.w.Plan, r.w.Begin, nil
		}
	default:
		p = Place{Loop: l.Loop, Clock: l.Clock(), first: r.first, salt: r.salt}
	}
	if r.closed {
		p.left = r.left
	}
	return p, l != nil || !r.w.Begin.IsZero()
}

// Begun returns how many rows of the loop a closed plan had begun when its runner retired, for which it waits.
func (p *Place) Begun(ctx context.Context) (rows int, err error) {
	left, err := p.left.take(ctx)
	return left.passed - len(left.rest), err
}

// Part returns how often the workload had begun anew when the runner began.
func (r *Runner) Part() int { return r.w.Part }

// An Instant is one instant by both clocks. The wall clock may be set before it comes.
type Instant = dispatch.Clock

// Retire ends the runner at an instant. Rows due before it are sent. Later rows belong to the successor, whose Begin is the
// same instant. Waiting rows are dropped then. Requests in flight may end, and so may sessions of which a row was due, within
// the drain time.
func (r *Runner) Retire(at Instant) {
	r.mu.Lock()
	r.until = at
	given := r.step(r.retirement(), nil)
	r.mu.Unlock()
	r.start(given)
}

// retirement is the event of the retirement that is arranged.
func (r *Runner) retirement() dispatch.Event {
	e := dispatch.Event{Kind: dispatch.Retire, At: r.until.Own}
	if r.d.FollowsWall {
		e.At = r.until.Wall
	}
	return e
}

// leave ends the reading at the handover, and the rest when the drain time is over. The lock is held.
func (r *Runner) leave() {
	if r.phase == measure.Warmup {
		r.endWork()
		return
	}
	if r.left != nil {
		r.left.publish(r)
	}
	r.wakeOthers() // dropped rows have left their slots
	r.endRead()
	drain := time.Duration(r.drain.Load())
	r.patience = time.AfterFunc(drain, func() {
		r.mu.Lock()
		flying := r.lanes.started - len(r.lanes.idle)
		r.mu.Unlock()
		if flying > 0 {
			r.w.Log.Warn("drain timed out: requests in flight are aborted", "workload", r.w.Name, "drain", drain)
		}
		r.stop() // before any of them ends: what comes after it is cut by the handover
		r.abort()
	})
}

// publish tells the successor what is left. The lock is held.
func (l *left) publish(r *Runner) {
	select {
	case <-l.known:
		return
	default:
	}
	defer close(l.known)
	if l.progress = r.progress; l.loop.Start.IsZero() {
		l.before = r.w.Place.left
		return
	}
	if r.w.Plan.Endless() { // its rows are random: others are as good
		l.progress = progress{loop: schedule.Loop{Number: l.loop.Number + 1, Start: l.loop.Start, Pass: l.loop.Pass + 1}}
		return
	}
	rest := l.rest
	l.rest = nil
	for _, row := range r.d.Left() {
		due := row.Due
		due.At = due.Loop.Start
		l.rest = append(l.rest, due)
	}
	l.rest = append(l.rest, rest...)
}

// take waits for what the predecessor leaves.
func (l *left) take(ctx context.Context) (p progress, err error) {
	for ; l != nil; l = l.before {
		select {
		case <-l.known:
			p = l.progress
		case <-ctx.Done():
			return p, ctx.Err()
		}
	}
	return p, nil
}
