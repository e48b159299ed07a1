package replay

import (
	"context"
	"time"

	"replayd/internal/dispatch"
	"replayd/internal/measure"
	"replayd/internal/metrics"
)

// warmUp plays the first rows of the plan in a closed loop of their own. It returns when they have ended, or when a stop
// has ended them. Pause, guard and budget apply to them, as to the plan's rows.
func (r *Runner) warmUp(ctx context.Context) error {
	if err := r.w.Target.await(ctx); err != nil {
		return err
	}
	f := &feed{r: r}
	if _, err := f.name(ctx); err != nil {
		return err
	}
	c := r.config()
	c.Closed, c.Coupled, c.FollowsWall = true, false, false
	if !r.w.Plan.Closed() {
		c.Lanes = max(1, r.w.WarmupLanes)
	}
	r.play(c, stage{
		phase: measure.Warmup, closed: true, rows: r.w.Warmup.Requests, epoch: r.salted(),
		count: metrics.Unseen(), observers: r.w.Warmed,
	})
	err := f.run(ctx)
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

// play begins a stage. The previous stage has ended.
func (r *Runner) play(c dispatch.Config, s stage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lanes.close()
	r.lanes.started, r.entered = 0, false
	c.Paused = r.d.IsPaused()
	r.d, r.stage = dispatch.New(c), s
	r.show()
	if !r.until.Own.IsZero() {
		r.step(r.retirement(), nil)
	}
}

// salted returns the epoch for the salts of the first loop. If no epoch is configured, it is the start of the warm-up, not
// of the plan, so that the rows of the warm-up and of the plan have the same texts.
func (r *Runner) salted() time.Time {
	if r.w.Epoch.IsZero() && !r.w.Plan.FollowsWall() {
		r.salt = r.w.clock().Wall
		return r.salt
	}
	return r.w.Epoch
}
