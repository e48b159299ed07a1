package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"replayd/internal/config"
	"replayd/internal/metrics"
	"replayd/internal/scarce"
)

// A supervisor owns the running generation. All changes happen on the goroutine of run, one after the other. None of
// them waits for a file, a target or the log, so that a pause takes effect at once, and none for longer than
// changeWithin for a workload that is stuck. Reloads have their own goroutine, which asks run only for the switch.
type supervisor struct {
	options  ServeOptions
	process  *metrics.Process
	watchdog *watchdog
	g        *Generation                            // written by run at the request of reloads, so reloads may read it, too
	shown    atomic.Pointer[func() ([]byte, error)] // the text of its configuration, made once because it can be long
	visitors atomic.Int64                           // connections that visitors may have
	calls    chan func()
	wanted   chan chan<- error // reloads whose callers wait for the result
	over     <-chan struct{}   // closed when run takes no more calls
	ending   *ending           // set by run

	reloading chan struct{} // closed at the end of the reload in progress; nil: none. Only run uses it
}

func newSupervisor(work context.Context, o ServeOptions, p *metrics.Process) *supervisor {
	k := &supervisor{options: o, process: p, calls: make(chan func()), wanted: make(chan chan<- error), over: work.Done()}
	k.shows(o.Config)
	return k
}

var errStopping = fmt.Errorf("replayd is stopping: %w", context.Canceled)

// run takes calls until work is cancelled, or cancels it by stop when all workloads are over and the configuration says
// so. When it returns, no reload is in progress that can end in time.
func (k *supervisor) run(work, hard context.Context, stop func()) {
	k.ending = k.g.shared.ending
	reloads := make(chan struct{})
	go func() {
		defer close(reloads)
		k.reloads(work, hard)
	}()
	defer func() { endsBefore(reloads, k.ending.workloads) }() // one may be stuck in a file
	for {
		var over <-chan struct{} // closed when the first workload is over that is not yet; nil: that ends nothing
		if g := k.g; g.options.Config.ExitWhenDone {
			i := slices.IndexFunc(g.workloads, func(w *workload) bool { return !w.ended() })
			if i < 0 {
				g.options.Log.Info("all workloads are over: replayd ends, as exit_when_done says")
				stop()
				return
			}
			over = g.workloads[i].over
		}
		select {
		case <-work.Done():
			return
		case <-over:
		case call := <-k.calls:
			done := make(chan struct{})
			go func() {
				defer close(done)
				call()
			}()
			select {
			case <-done:
			case <-work.Done():
				endsBefore(done, k.ending.workloads) // a change that is stuck does not keep the process
				return
			}
		}
	}
}

// call lets run execute f, and waits for that. Its error says why f was not executed, or has not ended: then f may
// still write its results, and the caller must not read them.
func (k *supervisor) call(ctx context.Context, f func()) error {
	done := make(chan struct{})
	select {
	case k.calls <- func() { defer close(done); f() }:
		select {
		case <-done: // soon: no call waits for long
			return nil
		case <-k.over:
		}
		if endsBefore(done, k.ending.workloads) {
			return nil
		}
	case <-k.over:
	case <-ctx.Done():
	}
	select {
	case <-k.over:
		return errStopping
	default:
		return ctx.Err()
	}
}

// pause pauses or resumes a workload, with "" all of them. An unknown name waits for a reload in progress, whose
// generation may have it.
func (k *supervisor) pause(ctx context.Context, workload string, paused bool) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		var g *Generation
		var changed []string
		var known bool
		var stuck error
		var reloading chan struct{}
		if err := k.call(ctx, func() {
			g, reloading = k.g, k.reloading
			changed, known, stuck = g.Pause(workload, paused)
		}); err != nil {
			return err
		}
		switch {
		case known:
			g.logPaused(changed, paused)
			return stuck
		case reloading == nil:
			return fmt.Errorf("want the name of a workload, got %q", workload)
		}
		select {
		case <-reloading:
		case <-k.over:
			return errStopping
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// restartComparison begins a new epoch of a comparison, unless the present one is about the version already.
func (k *supervisor) restartComparison(ctx context.Context, name, version string) (anew bool, err error) {
	var g *Generation
	var begun bool
	var failed error
	if err := k.call(ctx, func() {
		g = k.g
		begun, failed = g.RestartComparison(name, version)
	}); err != nil {
		return false, err
	}
	if failed != nil {
		return false, failed
	}
	log, of := g.options.Log, ""
	if version != "" {
		log, of = log.With("version", version), ", with version "+strconv.Quote(version)
	}
	if !begun {
		log.Info("the version is being judged already: its evidence continues", "comparison", name)
		return false, nil
	}
	g.shared.state.Write() // a crash must not bring the old verdict back
	log.Info("the evidence begins anew, as requested", "comparison", name)
	g.options.note(slog.LevelInfo, "comparison "+name+" begins anew, as requested"+of)
	return true, nil
}

// files returns the limit of what a stop waits for; nil: there is none yet.
func (k *supervisor) files() <-chan struct{} {
	if k.ending == nil {
		return nil
	}
	return k.ending.files
}

// shows sets the configuration that show returns, and the connections that it leaves for visitors.
func (k *supervisor) shows(c config.Config) {
	if k.options.Runs != nil {
		k.options.Runs(c)
	}
	k.visitors.Store(int64(visitorsOf(&c, scarce.DescriptorLimit())))
	text := sync.OnceValues(c.Show)
	k.shown.Store(&text)
}

// show returns the running configuration without its secrets.
func (k *supervisor) show() ([]byte, error) { return (*k.shown.Load())() }
