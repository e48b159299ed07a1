package daemon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"replayd/internal/secret"
)

// ErrUnreached is that no connection to any target was ever made.
var ErrUnreached = errors.New("no connection was ever made")

// lookEvery is how often a run looks whether a connection was made, and so how late it may end.
const lookEvery = time.Second

// lookout calls giveUp when, patience after the first row was due, no connection to any target was ever made. It looks until
// the end that it returns is called.
func (g *Generation) lookout(patience time.Duration, giveUp func(error)) (end func()) {
	if patience == 0 {
		return func() {}
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for due := (time.Time{}); ; {
			switch now := time.Now(); {
			case g.connected():
				return
			case due.IsZero():
				if g.anyDue() {
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
	}()
	return func() {
		stop()
		<-done
	}
}

// connected says whether a connection to a target that requests go to was ever made.
func (g *Generation) connected() bool {
	for _, w := range g.workloads {
		if w.server.client.Connected() {
			return true
		}
	}
	return false
}

// anyDue says whether a row was due yet. Warm-up requests are no rows.
func (g *Generation) anyDue() bool {
	for _, w := range g.workloads {
		if w.count.Ledger().Expected > 0 {
			return true
		}
	}
	return false
}

// unreached says which targets were not reached, and why.
func (g *Generation) unreached(patience time.Duration) error {
	told := map[string]bool{}
	var errs []error
	for _, w := range g.workloads {
		t := w.server.config
		if told[t.Name] {
			continue
		}
		told[t.Name] = true
		err := fmt.Errorf("%s: %w, %v after the first request was due", secret.Shown(t.URL), ErrUnreached, patience)
		if why := w.server.watch.Answer().Text; why != "" {
			err = fmt.Errorf("%w: %s", err, why)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
