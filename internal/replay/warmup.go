package replay

import (
	"context"
	"time"

	"replayd/internal/measure"
)

// warmUp plays the first rows of the plan in a closed loop of their own, and returns when they have ended, or a stop has
// ended them. Pause, guard and budget hold for them as for the plan's rows.
func (r *Runner) warmUp(ctx, hard context.Context) error {
	if err := r.w.Target.await(ctx); err != nil {
		return nil // a stop
	}
	if _, err := r.name(ctx); err != nil {
		return nil // likewise
	}
	r.mu.Lock() // from here on what a reload changes is passed on
	w := r.w
	w.Rows, w.Duration, w.Warmup = r.w.Warmup, 0, 0
	w.Observers, w.Dropped, w.Clipped = r.w.Warmed, nil, nil
	w.Epoch, w.Begin = r.salted(), time.Time{}
	if !w.Plan.Closed() {
		w.Lanes = max(1, w.WarmupLanes)
	}
	warm := newRunner(w, uncounted{w.Count}, true)
	warm.phase = measure.Warmup

	warm.queue.paused, warm.until, warm.leaves = r.queue.paused, r.until, r.leaves
	r.warming = warm
	r.mu.Unlock()
	err := warm.Run(ctx, hard)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.warming = nil
	r.follow(warm)
	return err
}

// salted settles from when the texts of the first loop have their salt where no epoch is given: from now, and not from when
// the plan begins, or the rows of the warm-up would have others.
func (r *Runner) salted() time.Time {
	if r.w.Epoch.IsZero() && !r.w.Plan.FollowsWall() {
		r.salt = readClock(r.w.Wall).wall
		return r.salt
	}
	return r.w.Epoch
}
