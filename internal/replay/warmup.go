package replay

import (
	"context"
	"time"

	"replayd/internal/dispatch"
	"replayd/internal/measure"
)

// A stage is a part of a run: the warm-up, then the plan.
type stage struct {
	phase     measure.RunPhase
	closed    bool          // it is a closed loop
	rows      int           // after which it is over, filtered ones not counted; 0: all
	length    time.Duration // nothing comes due later than this after it begins; 0: no limit
	epoch     time.Time     // start of the first loop; zero: when it begins
	count     figures
	observers []Observer
	dropped   func(measure.DropReason) // nil: nobody hears
	clipped   func()                   // likewise
}

// plan is the stage that the workload's plan is.
func (w *Workload) plan() stage {
	return stage{
		phase: measure.Profiling, closed: w.Plan.Closed(), rows: w.Rows, length: w.Duration, epoch: w.Epoch,
		count: w.Count, observers: w.Observers, dropped: w.Dropped, clipped: w.Clipped,
	}
}

// warmUp plays the first rows of the plan in a closed loop of their own, and returns when they have ended, or a stop has
// ended them. Pause, guard and budget hold for them as for the plan's rows.
func (r *Runner) warmUp(ctx context.Context) error {
	if err := r.w.Target.await(ctx); err != nil {
		return err
	}
	if _, err := r.name(ctx); err != nil {
		return err
	}
	c := r.config()
	c.Closed, c.FollowsWall = true, false
	if !r.w.Plan.Closed() {
		c.Lanes = max(1, r.w.WarmupLanes)
	}
	r.play(c, stage{
		phase: measure.Warmup, closed: true, rows: r.w.Warmup, epoch: r.salted(),
		count: uncounted{r.w.Count}, observers: r.w.Warmed,
	})
	err := r.feed(ctx)
	<-r.warmed
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	r.play(r.config(), r.w.plan())
	return nil
}

// play begins a stage, where nothing of another is left.
func (r *Runner) play(c dispatch.Config, s stage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.idle {
		close(l.work)
	}
	r.idle, r.lanes, r.entered, r.seq, r.filtered = nil, 0, false, 0, 0
	c.Paused = r.d.IsPaused()
	r.d, r.stage = dispatch.New(c), s
	if !r.until.IsZero() {
		r.step(dispatch.Event{Kind: dispatch.Retire, At: r.until}, nil)
	}
}

// salted settles from when the texts of the first loop have their salt where no epoch is given: from now, and not from when
// the plan begins, or the rows of the warm-up would have others.
func (r *Runner) salted() time.Time {
	if r.w.Epoch.IsZero() && !r.w.Plan.FollowsWall() {
		r.salt = readClock(r.w.Wall).Wall
		return r.salt
	}
	return r.w.Epoch
}
