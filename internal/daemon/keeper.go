package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"replayd/internal/config"
	"replayd/internal/measure"
)

// watchEvery is how often the configuration file is looked at.
const watchEvery = 5 * time.Second

// A keeper owns the generation that runs: everything that changes it happens on the goroutine of its run, one after
// the other.
type keeper struct {
	options ServeOptions
	process *measure.Process
	g       *Generation
	shown   atomic.Pointer[config.Config] // of g
	calls   chan func()
	over    <-chan struct{} // closed when no more calls are taken
}

var errStopping = fmt.Errorf("replayd is stopping: %w", context.Canceled)

// run takes calls until work is cancelled.
func (k *keeper) run(work, hard context.Context) {
	var changed <-chan struct{}
	if k.options.Watch != nil {
		watch, end := context.WithCancel(work)
		defer end()
		changes := make(chan struct{})
		changed = changes
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			k.options.Watch.Run(watch, watchEvery, changes)
		}()
		defer func() { end(); <-ended }()
	}
	for {
		select {
		case <-work.Done():
			return
		case call := <-k.calls:
			call()
		case <-k.options.Hangup:
			_ = k.reload(work, hard) // it is logged
		case <-changed:
			_ = k.reload(work, hard)
		}
	}
}

// ask has f done by run.
func (k *keeper) ask(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	select {
	case k.calls <- func() { done <- f() }:
	case <-k.over:
		return errStopping
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done(): // f goes on
		return ctx.Err()
	}
}

// reload reads the configuration and switches to it. An error changes nothing.
func (k *keeper) reload(work, hard context.Context) error {
	if k.options.Load == nil {
		return nil
	}
	begin := time.Now()
	next, err := k.next(work)
	if err != nil {
		if work.Err() != nil {
			return errStopping
		}
		k.process.Reloaded(err, time.Now())
		k.options.Log.Error("configuration not reloaded, the one before runs on", "err", err)
		k.g.options.note(slog.LevelError, "not reloaded: "+err.Error())
		return err
	}
	if now := next.options.Config.Web; now != k.g.options.Config.Web {
		k.options.Log.Warn("the section web of the configuration takes effect at a restart only")
		next.options.Config.Web = k.g.options.Config.Web
	}
	words := next.against(k.g)
	next.Replace(work, hard, k.g)
	k.g = next
	k.shown.Store(&next.options.Config)
	k.openRecords()
	k.process.Reloaded(nil, time.Now())
	k.options.Log.Info("configuration reloaded", "workloads", words, "took", time.Since(begin).Round(time.Millisecond))
	k.g.options.note(slog.LevelInfo, "reloaded: "+words)
	return nil
}

func (k *keeper) next(ctx context.Context) (*Generation, error) {
	c, err := k.options.Load()
	if err != nil {
		return nil, err
	}
	return k.g.Next(ctx, c)
}

// openRecords lets the replay go on when records cannot be written: the sink counts them and tries again.
func (k *keeper) openRecords() {
	if err := k.g.OpenRecords(); err != nil {
		k.options.Log.Error("records are not written, trying again until they are", "err", err)
	}
}

// against says in words what a generation is to change.
func (g *Generation) against(old *Generation) string {
	var same, changed, added, removed int
	for _, w := range g.workloads {
		switch {
		case w.started():
			same++
		case old.workload(w.config.Name) != nil:
			changed++
		default:
			added++
		}
	}
	for _, w := range old.workloads {
		if g.workload(w.config.Name) == nil {
			removed++
		}
	}
	return fmt.Sprintf("%d unchanged, %d changed, %d added, %d removed", same, changed, added, removed)
}

func (k *keeper) pause(ctx context.Context, workload string, paused bool) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return k.ask(ctx, func() error {
		if !k.g.Pause(workload, paused) {
			return fmt.Errorf("want the name of a workload, got %q", workload)
		}
		return nil
	})
}

// show is the running configuration without its secrets.
func (k *keeper) show() ([]byte, error) { return k.shown.Load().Show() }
