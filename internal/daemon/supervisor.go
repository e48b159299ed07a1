package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"replayd/internal/config"
	"replayd/internal/metrics"
)

// A supervisor owns the running generation. All changes happen on the goroutine of run, one after the other. None of them waits for a
// file, a target or the log, so that a pause takes effect at once. Reloads have their own goroutine, which asks run only for the
// switch.
type supervisor struct {
	options ServeOptions
	process *metrics.Process
	g       *Generation                            // written by run at the request of reloads, so reloads may read it, too
	shown   atomic.Pointer[func() ([]byte, error)] // the text of its configuration, made once because it can be long
	calls   chan func()
	wanted  chan chan<- error // reloads whose callers wait for the result
	over    <-chan struct{}   // closed when run takes no more calls

	reloading bool     // only run uses it
	later     []func() // only run uses it: calls that wait for the end of the reload in progress
}

func newSupervisor(work context.Context, o ServeOptions, p *metrics.Process) *supervisor {
	k := &supervisor{options: o, process: p, calls: make(chan func()), wanted: make(chan chan<- error), over: work.Done()}
	k.shows(o.Config)
	return k
}

var errStopping = fmt.Errorf("replayd is stopping: %w", context.Canceled)

// run takes calls until work is cancelled. When it returns, no reload is in progress.
func (k *supervisor) run(work, hard context.Context) {
	var side sync.WaitGroup
	defer side.Wait()
	side.Go(func() { k.reloads(work, hard) })
	for {
		select {
		case <-work.Done():
			return
		case call := <-k.calls:
			call()
		}
	}
}

// call lets run execute f, and waits for its end. It returns false, and f is not executed, if run takes no more calls or ctx is done.
func (k *supervisor) call(ctx context.Context, f func()) bool {
	done := make(chan struct{})
	select {
	case k.calls <- func() { defer close(done); f() }:
		<-done // soon: no call blocks
		return true
	case <-k.over:
	case <-ctx.Done():
	}
	return false
}

// gone returns why a call was not executed or not answered.
func (k *supervisor) gone(ctx context.Context) error {
	select {
	case <-k.over:
		return errStopping
	default:
		return ctx.Err()
	}
}

// pause pauses or resumes a workload, with "" all of them. An unknown name waits for a reload in progress, whose generation may have
// it.
func (k *supervisor) pause(ctx context.Context, workload string, paused bool) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	var g *Generation // the one that was paused
	var changed []string
	done := make(chan error, 1)
	try := func() (known bool) {
		if changed, known = k.g.Pause(workload, paused); known {
			g = k.g
			done <- nil
		}
		return known
	}
	unknown := func() { done <- fmt.Errorf("want the name of a workload, got %q", workload) }
	if !k.call(ctx, func() {
		switch {
		case try():
		case k.reloading:
			k.later = append(k.later, func() {
				if !try() {
					unknown()
				}
			})
		default:
			unknown()
		}
	}) {
		return k.gone(ctx)
	}
	select {
	case err := <-done:
		if err == nil {
			g.tellPaused(changed, paused)
		}
		return err
	case <-k.over:
	case <-ctx.Done():
	}
	return k.gone(ctx)
}

// restartComparison begins a new epoch of a comparison.
func (k *supervisor) restartComparison(ctx context.Context, name string) error {
	known := false
	var g *Generation
	if !k.call(ctx, func() { g, known = k.g, k.g.RestartComparison(name) }) {
		return k.gone(ctx)
	}
	if !known {
		return fmt.Errorf("want the name of a comparison, got %q", name)
	}
	g.shared.state.write() // a crash must not bring the old verdict back
	g.options.Log.Info("the evidence begins anew, as requested", "comparison", name)
	g.options.note(slog.LevelInfo, "comparison "+name+" begins anew, as requested")
	return nil
}

// shows sets the configuration that show returns.
func (k *supervisor) shows(c config.Config) {
	text := sync.OnceValues(c.Show)
	k.shown.Store(&text)
}

// show returns the running configuration without its secrets.
func (k *supervisor) show() ([]byte, error) { return (*k.shown.Load())() }
