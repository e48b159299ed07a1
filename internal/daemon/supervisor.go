package daemon

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"replayd/internal/config"
	"replayd/internal/metrics"
)

// A supervisor owns the generation that runs. Everything that changes it happens on the goroutine of its run, one after the other,
// and none of that waits for a file, a target or the log: a pause takes effect at once, whatever else is under way. Reloads have
// a goroutine of their own, which asks the owner for the switch only.
type supervisor struct {
	options ServeOptions
	process *metrics.Process
	g       *Generation                            // written by the owner; reloads may read it, too, because only they have it written
	shown   atomic.Pointer[func() ([]byte, error)] // the text of its configuration, made once: there may be hundreds of workloads in it
	calls   chan func()
	wanted  chan chan<- error // reloads whose result is waited for
	over    <-chan struct{}   // closed when no more calls are taken

	reloading bool     // the owner's
	later     []func() // the owner's: what waits for the end of the reload under way
}

func newSupervisor(work context.Context, o ServeOptions, p *metrics.Process) *supervisor {
	k := &supervisor{options: o, process: p, calls: make(chan func()), wanted: make(chan chan<- error), over: work.Done()}
	k.shows(o.Config)
	return k
}

var errStopping = fmt.Errorf("replayd is stopping: %w", context.Canceled)

// run takes calls until work is cancelled. When it returns no reload is under way.
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

// call has f done by run, and waits for its end. It is false, and f is not done, when run takes no calls any more or ctx is over.
func (k *supervisor) call(ctx context.Context, f func()) bool {
	done := make(chan struct{})
	select {
	case k.calls <- func() { defer close(done); f() }:
		<-done // soon: no call waits for anything
		return true
	case <-k.over:
	case <-ctx.Done():
	}
	return false
}

// gone is why a call was not done, or not answered.
func (k *supervisor) gone(ctx context.Context) error {
	select {
	case <-k.over:
		return errStopping
	default:
		return ctx.Err()
	}
}

// pause holds back what falls due of a workload, "" of all, or lets it go again. A name that only the generation of a reload under
// way may have waits for that reload.
func (k *supervisor) pause(ctx context.Context, workload string, paused bool) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	var g *Generation // that it was done to
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

// shows has show give another configuration.
func (k *supervisor) shows(c config.Config) {
	text := sync.OnceValues(c.Show)
	k.shown.Store(&text)
}

// show is the running configuration without its secrets.
func (k *supervisor) show() ([]byte, error) { return (*k.shown.Load())() }
