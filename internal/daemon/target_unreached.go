package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"replayd/internal/secret"
)

// ErrUnreached means that no connection to any target was ever made.
var ErrUnreached = errors.New("no connection was ever made")

// checkEvery is the interval of checking for a connection, and so how late a run may be cut.
const checkEvery = time.Second

// watchUnreached calls giveUp if no connection to any target was made within patience after the first due row. It
// checks until the function that it returns is called.
func (g *Generation) watchUnreached(patience time.Duration, giveUp func(error)) (end func()) {
	if patience == 0 {
		return func() {}
	}
	ctx, stop := context.WithCancel(context.Background())
	var looking sync.WaitGroup
	looking.Go(func() {
		tick := time.NewTicker(checkEvery)
		defer tick.Stop()
		for due := (time.Time{}); ; {
			switch now := time.Now(); {
			case slices.ContainsFunc(g.workloads, func(w *workload) bool { return w.server.client.Connected() }):
				return
			case due.IsZero():
				if g.options.Meter.Ledger().Expected > 0 { // which warm-up requests do not count in
					due = now
				}
			case now.Sub(due) >= patience:
				giveUp(g.unreached(patience))
				return
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		stop()
		looking.Wait()
	}
}

// unreached returns an error with the targets that were not reached, and why.
func (g *Generation) unreached(patience time.Duration) error {
	seen := map[string]bool{}
	var errs []error
	for _, w := range g.workloads {
		t := w.server.config
		if seen[t.Name] {
			continue
		}
		seen[t.Name] = true
		err := fmt.Errorf("%s: %w, %v after the first request was due", secret.Shown(t.URL), ErrUnreached, patience)
		if why := w.server.watch.Health().Text; why != "" {
			err = fmt.Errorf("%w: %s", err, why)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
