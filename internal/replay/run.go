package replay

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"replayd/internal/dispatch"
)

// Run replays until the plan is over or ctx is cancelled. Then waiting rows are dropped, and requests in flight may end
// within the drain time, or until hard is cancelled. It returns when all goroutines of the runner have ended: with nil
// after the end of the plan or a stop, with an error if the trace could not be read to its end.
func (r *Runner) Run(ctx, hard context.Context) (err error) {
	defer r.close()
	hard, abort := context.WithCancel(hard)
	defer abort()
	work, stop := context.WithCancel(ctx)
	defer stop()
	r.mu.Lock()
	r.runners = append(r.runners, r)
	r.lanes.launch = func(l *lane) { r.lanes.running.Go(func() { r.runLane(hard, l) }) }
	reading, endRead := context.WithCancel(work)
	defer endRead()
	r.endWork, r.endRead, r.abort = stop, endRead, abort
	r.alarm = r.w.Pacer.join(&r.mu, r.w.side(), r.tick)
	r.alarm.want()
	r.mu.Unlock()
	defer r.alarm.leave()
	detach := context.AfterFunc(hard, stop)
	defer detach()

	var feedErr error
	var rooms, warmer sync.WaitGroup
	rooms.Go(func() { feedErr = r.read(reading) })
	rooms.Go(r.build)
	rooms.Go(r.log.write)
	warming, endWarming := context.WithCancel(work)
	defer endWarming()
	warmer.Go(func() { r.warm(warming) })
	if r.guard.breaker != nil {
		warmer.Go(func() { r.watch(warming) })
	}
	if !r.w.Plan.Closed() { // the stage may be the warm-up already
		// The dispatcher tells a standstill of this process from a time without events.
		warmer.Go(func() { repeat(warming, beatEvery, func() { r.act(dispatch.Event{Kind: dispatch.Poll}) }) })
	}
	if r.w.Sides != nil {
		warmer.Go(func() { r.deliverBothEnded(warming) })
	}

	stopped := make(chan struct{})
	natural := context.AfterFunc(work, func() {
		r.stop()
		close(stopped)
	})
	finished := make(chan struct{})
	go func() { // every case below waits for it
		rooms.Wait()
		r.lanes.running.Wait()
		endWarming()
		warmer.Wait()
		close(finished)
	}()
	select {
	case <-finished:
	case <-work.Done():
		patience := time.Duration(r.drain.Load())
		select {
		case <-finished:
		case <-hard.Done():
		case <-time.After(patience):
			r.w.Log.Warn("drain timed out: requests in flight are aborted", "workload", r.w.Name, "drain", patience)
		}
		abort()
		<-finished
	}
	if !natural() {
		<-stopped
	}
	switch {
	case errors.Is(feedErr, errRetired), reading.Err() != nil && work.Err() == nil && errors.Is(feedErr, context.Canceled):
		return nil
	case work.Err() != nil && (errors.Is(feedErr, context.Canceled) || errors.Is(feedErr, context.DeadlineExceeded)):
		r.cut.Store(true) // rows were left, however few requests there were to wait for
		return nil
	}
	return feedErr
}

// read reads the rows of the warm-up, and then the rows of the plan.
func (r *Runner) read(ctx context.Context) error {
	if r.w.Warmup.Requests > 0 && r.w.Begin.IsZero() && !r.w.Over {
		if err := r.warmUp(ctx); err != nil {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.end()
			return err
		}
	}
	return (&feed{r: r}).run(ctx)
}

// close resets the guard gauges and removes the runner from its workload.
func (r *Runner) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.guard.reset()
	if r.left != nil {
		r.left.publish(r)
	}
	if r.patience != nil {
		r.patience.Stop()
	}
	r.runners = slices.DeleteFunc(r.runners, func(one *Runner) bool { return one == r })
}

// stop ends the taking of new work.
func (r *Runner) stop() {
	r.mu.Lock()
	r.cut.Store(!r.over)
	r.mu.Unlock()
	r.deliver(dispatch.Event{Kind: dispatch.Stop})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.guard.reset()
	r.wakeOthers()
}

// beatEvery is the interval at which the dispatcher of an open loop learns that this process runs. It is no divisor of
// a second, so that it seldom takes the lock at an instant at which rows are due.
const beatEvery = 487 * time.Millisecond

// repeat calls do each time that an interval has passed, until ctx is done.
func repeat(ctx context.Context, interval time.Duration, do func()) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			do()
		case <-ctx.Done():
			return
		}
	}
}

// watch judges the guard while no row falls due.
func (r *Runner) watch(ctx context.Context) {
	for {
		r.deliver(dispatch.Event{Kind: dispatch.Poll})
		r.mu.Lock()
		wait := r.guard.breaker.Wait(time.Now())
		r.mu.Unlock()
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// deliverBothEnded tells the dispatcher of rows that have ended on both sides, until ctx is done.
func (r *Runner) deliverBothEnded(ctx context.Context) {
	side := r.w.side()
	for {
		select {
		case <-r.w.Sides.news[side-baseline]:
		case <-ctx.Done():
			return
		}
		for _, e := range r.w.Sides.popEnded(side) {
			r.deliver(dispatch.Event{Kind: dispatch.BothEnded, Row: e.row, At: e.at})
		}
	}
}
