package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"replayd/internal/config"
	"replayd/internal/scarce"
)

// watchEvery is the interval of checking the configuration file for changes.
const watchEvery = 5 * time.Second

// reloads runs one reload after the other until work is cancelled. All requests during a reload lead to one further
// reload after it, because the one in progress may have read the file before it changed. One that failed is tried again, but for
// faults of the configuration itself, which only a change of it mends.
func (k *supervisor) reloads(work, hard context.Context) {
	var watch sync.WaitGroup
	defer watch.Wait()
	var changed chan struct{} // nil: the file is not watched
	if k.options.Watch != nil {
		changed = make(chan struct{})
		watch.Go(func() { k.options.Watch.Run(work, watchEvery, changed) })
	}
	var waiting []chan<- error
	var again retry
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-work.Done():
			return
		case <-k.options.Hangup:
			again.pause = 0
		case <-changed:
			again.pause = 0
		case done := <-k.wanted:
			waiting = append(waiting, done)
			again.pause = 0
		case <-tick.C:
			if !again.due() {
				continue
			}
		}
		for more := true; more; {
			select {
			case <-k.options.Hangup:
			case <-changed:
			case done := <-k.wanted:
				waiting = append(waiting, done)
			default:
				more = false
			}
		}
		err := k.reload(work, hard, &again)
		for _, done := range waiting {
			done <- err
		}
		waiting = waiting[:0]
	}
}

// reloaded requests a reload and waits for its end. The reload goes on if ctx ends first.
func (k *supervisor) reloaded(ctx context.Context) error {
	done := make(chan error, 1)
	select {
	case k.wanted <- done:
	case <-k.over:
		return errStopping
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// reload reads the configuration, builds its generation and switches to it. An error changes nothing, and is logged if it is another
// one than at the try before.
func (k *supervisor) reload(work, hard context.Context, again *retry) error {
	if k.options.Load == nil {
		return nil
	}
	begin := time.Now()
	if err := k.call(work, func() { k.reloading = make(chan struct{}) }); err != nil {
		return errStopping
	}
	var c config.Config
	var wrong error
	next, err := startWithin(work, func() (*Generation, error) {
		c, wrong = k.options.Load()
		return k.next(work, c, wrong)
	})
	if err == nil {
		if err = next.reach(k.g); err != nil {
			err = errors.Join(err, next.discard())
		}
	}
	if err != nil {
		_ = k.call(work, k.end) // a stop needs no end of the reload
		if work.Err() != nil {
			return errStopping
		}
		k.process.Reloaded(err, time.Now())
		if err.Error() != again.said || again.pause == 0 {
			k.options.Log.Error("configuration not reloaded: the previous one stays in effect", "err", err, "retried", wrong == nil)
			k.g.options.note(slog.LevelError, "not reloaded: "+err.Error())
		}
		if wrong != nil {
			*again = retry{}
		} else {
			again.failed(c, err)
		}
		return err
	}
	*again = retry{}
	if now := next.options.Config.Web; !reflect.DeepEqual(now, k.g.options.Config.Web) {
		k.options.Log.Warn("the section web of the configuration takes effect after a restart only")
		next.options.Config.Web = k.g.options.Config.Web
	}
	words := next.against(k.g)
	if err := k.call(work, func() {
		next.Replace(work, hard, k.g)
		k.g = next
		k.shows(next.options.Config)
		k.end()
	}); err != nil {
		if err := next.discard(); err != nil {
			k.options.Log.Warn("a trace of the discarded configuration cannot be closed", "err", err)
		}
		return errStopping
	}
	warnDescriptors(k.options.Log, &next.options.Config, scarce.DescriptorLimit())
	k.openRecords()
	k.g.shared.state.Settle()
	k.process.Reloaded(nil, time.Now())
	k.options.Log.Info("configuration reloaded", "workloads", words, "took", time.Since(begin).Round(time.Millisecond))
	next.options.note(slog.LevelInfo, "reloaded: "+words)
	return nil
}

// end says that a reload has ended. Only run calls it.
func (k *supervisor) end() {
	close(k.reloading)
	k.reloading = nil
}

func (k *supervisor) next(ctx context.Context, c config.Config, wrong error) (*Generation, error) {
	if wrong != nil {
		return nil, Check(ctx, c, k.options.Log, wrong) // with the faults of the files
	}
	return k.g.Next(ctx, c)
}

// openRecords opens the records. If that fails the replay goes on: the sink counts the lost records and tries again.
func (k *supervisor) openRecords() {
	if err := k.g.OpenRecords(); err != nil {
		k.options.Log.Error("records cannot be written: retrying", "err", err)
	}
}

// against describes what a generation changes.
func (g *Generation) against(old *Generation) string {
	var same, changed, added, removed int
	for _, w := range g.workloads {
		switch {
		case w.started():
			same++
		case old.named[w.config.Name] != nil:
			changed++
		default:
			added++
		}
	}
	for _, w := range old.workloads {
		if g.named[w.config.Name] == nil {
			removed++
		}
	}
	return fmt.Sprintf("%d unchanged, %d changed, %d added, %d removed", same, changed, added, removed)
}
