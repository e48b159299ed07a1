package daemon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"replayd/internal/secret"
)

// ErrUnreached means that no connection to any target was ever made.
var ErrUnreached = errors.New("no connection was ever made")

// lookEvery is the interval of checking for a connection, and so how late a run may be cut.
const lookEvery = time.Second

// lookout calls giveUp if no connection to any target was made within patience after the first due row. It checks until the
// function that it returns is called.
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

// connected reports whether a connection to the target of a workload was ever made.
func (g *Generation) connected() bool {
	for _, w := range g.workloads {
		if w.server.client.Connected() {
			return true
		}
	}
	return false
}

// anyDue reports whether a row has come due. Warm-up requests do not count.
func (g *Generation) anyDue() bool {
	for _, w := range g.workloads {
		if w.count.Ledger().Expected > 0 {
			return true
		}
	}
	return false
}

// unreached returns an error with the targets that were not reached, and why.
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
