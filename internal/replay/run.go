package replay

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"replayd/internal/dispatch"
)

// Run replays until the plan is over or ctx is cancelled. Then waiting rows are dropped, and requests in flight may end within the
// drain time, or until hard is cancelled. It returns when all goroutines of the runner have ended: with nil after the end of the plan
// or a stop, with an error if the trace could not be read to its end.
func (r *Runner) Run(ctx, hard context.Context) (err error) {
	defer r.close()
	endPacer, err := r.ownPacer()
	if err != nil {
		return err
	}
	defer endPacer()
	r.mu.Lock()
	r.runners = append(r.runners, r)
	r.mu.Unlock()
	hard, abort := context.WithCancel(hard)
	defer abort()
	work, stop := context.WithCancel(ctx)
	defer stop()
	r.mu.Lock()
	r.launch = func(l *lane) { r.running.Go(func() { r.runLane(hard, l) }) }
	r.endWork = stop
	r.alarm = r.w.Pacer.join(&r.mu, r.w.side(), r.tick)
	r.alarm.want()
	r.mu.Unlock()
	defer r.alarm.leave()
	detach := context.AfterFunc(hard, stop)
	defer detach()

	var feedErr error
	var rooms, warmer sync.WaitGroup
	rooms.Go(func() { feedErr = r.read(work) })
	rooms.Go(r.build)
	rooms.Go(r.writeLog)
	warming, endWarming := context.WithCancel(work)
	defer endWarming()
	warmer.Go(func() { r.warm(warming) })
	if r.breaker != nil {
		warmer.Go(func() { r.watch(warming) })
	}
	if r.w.Sides != nil {
		warmer.Go(func() { r.hear(warming) })
	}

	stopped := make(chan struct{})
	natural := context.AfterFunc(work, func() {
		r.stop()
		close(stopped)
	})
	finished := make(chan struct{})
	go func() { // every case below waits for it
		rooms.Wait()
		r.running.Wait()
		endWarming()
		warmer.Wait()
		close(finished)
	}()
	select {
	case <-finished:
	case <-work.Done():
		drain := time.NewTimer(r.drain())
		select {
		case <-finished:
		case <-hard.Done():
		case <-drain.C:
			r.w.Log.Warn("drain timed out: requests in flight are aborted", "workload", r.w.Name, "drain", r.drain())
		}
		drain.Stop()
		abort()
		<-finished
	}
	if !natural() {
		<-stopped
	}
	switch {
	case errors.Is(feedErr, errRetired):
		return nil
	case work.Err() != nil && (errors.Is(feedErr, context.Canceled) || errors.Is(feedErr, context.DeadlineExceeded)):
		r.mu.Lock()
		r.cut = true // rows were left, however few requests there were to wait for
		r.mu.Unlock()
		return nil
	}
	return feedErr
}

// read reads the rows of the warm-up, and then the rows of the plan.
func (r *Runner) read(ctx context.Context) error {
	if r.w.Warmup > 0 && !r.succeeds && r.w.Begin.IsZero() {
		if err := r.warmUp(ctx); err != nil {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.end()
			return err
		}
	}
	return (&feed{r: r}).run(ctx)
}

// ownPacer runs a pacer for this runner alone if the workload has none.
func (r *Runner) ownPacer() (end func(), err error) {
	if r.w.Pacer != nil {
		return func() {}, nil
	}
	sleeper := r.w.Sleeper
	if sleeper == nil {
		if sleeper, err = NewSleeper(); err != nil {
			return nil, err
		}
	}
	r.w.Pacer = NewPacer(sleeper)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.w.Pacer.Run(ctx)
	}()
	return func() {
		stop()
		<-ended
	}, nil
}

// close resets the guard gauges and removes the runner from its workload.
func (r *Runner) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unguard()
	r.runners = slices.DeleteFunc(r.runners, func(one *Runner) bool { return one == r })
}

// stop ends the taking of new work.
func (r *Runner) stop() {
	r.mu.Lock()
	r.cut = !r.over
	r.mu.Unlock()
	r.tell(dispatch.Event{Kind: dispatch.Stop})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unguard()
	r.wakeOthers()
}
