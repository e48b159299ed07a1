package daemon

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"replayd/internal/config"
	"replayd/internal/gpu"
	"replayd/internal/live"
	"replayd/internal/measure"
	"replayd/internal/metrics"
	"replayd/internal/replay"
	"replayd/internal/scrape"
	"replayd/internal/web"
)

// ServeOptions of Serve.
type ServeOptions struct {
	Config     config.Config
	Version    string
	Log        *slog.Logger
	LogDropped func() uint64 // number of log lines that were not written; nil: 0
	Observers  []replay.Observer

	// Started is called when everything runs, with the address and a function that returns the ledger of all requests; nil: not called.
	Started func(url string, ledger func() measure.Ledger)

	Load   func() (config.Config, error) // reads the configuration again; nil: there is no reload
	Hangup <-chan os.Signal              // each signal reloads; nil: none
	Watch  *config.Watcher               // checked every few seconds: a change reloads; nil: none
}

// ErrBuild wraps the faults of a configuration or of the files that it names.
type ErrBuild struct{ Err error }

func (e *ErrBuild) Error() string { return e.Err.Error() }

// Unwrap returns the faults.
func (e *ErrBuild) Unwrap() error { return e.Err }

// Serve runs a configuration, and those of later reloads, until ctx is cancelled and the requests in flight have drained, or
// until hard is cancelled. Records that cannot be written are logged and counted, and are no error. The series of a workload
// that is over stay on /metrics. The stop is the start in reverse: requests first, the page last, so that a last scrape sees
// how the requests ended.
func Serve(ctx, hard context.Context, o ServeOptions) (err error) {
	reg := prometheus.NewRegistry()
	process := metrics.NewProcess(reg, os.DirFS("/"), time.Now(), o.LogDropped)
	engines, gpus, comparisons := scrape.NewCollector(reg), gpu.NewCollector(reg), metrics.NewComparisons(reg)
	board := live.New(live.Options{Version: o.Version, Servers: liveServers(engines, gpus), Comparisons: comparisons.Now})
	work, stop := context.WithCancel(ctx)
	defer stop()
	detach := context.AfterFunc(hard, stop)
	defer detach()
	k := newSupervisor(work, o, process)
	p, err := openPage(ctx, k.page(reg, board, comparisons), stop) // if the page ends, the daemon stops
	if build := (*ErrBuild)(nil); errors.As(err, &build) {
		if all := Check(work, o.Config, o.Log, nil); all != nil { // reports the other faults, too
			build.Err = all
		}
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()

	failures := newFailureLog(o.Log)
	k.g, err = Build(work, Options{
		Config: o.Config, Meter: metrics.NewMeter(reg), Board: board, Engines: engines, GPUs: gpus, Comparisons: comparisons,
		UserAgent: "replayd/" + o.Version, Log: o.Log, Observers: o.Observers, LogFailure: failures.add, Patient: true,
		Failed: func(err error) {
			o.Log.Error("stopped early: the other workloads continue", "err", err)
			board.Note(time.Now(), slog.LevelError, err.Error())
		},
	})
	if err != nil {
		if work.Err() != nil {
			return nil // the daemon was stopped
		}
		return &ErrBuild{err}
	}
	var side sync.WaitGroup
	sideCtx, endSide := context.WithCancel(context.WithoutCancel(ctx))
	defer side.Wait()
	defer endSide()
	side.Go(func() { failures.run(sideCtx) })
	side.Go(func() { _ = board.Run(sideCtx) }) // it ends only with its context
	k.openRecords()
	process.Reloaded(nil, time.Now())
	k.g.Start(work, hard)
	p.Ready()
	if o.Started != nil {
		o.Started(p.URL(), k.g.options.Meter.Ledger)
	}
	k.run(work, hard)
	o.Log.Info("stopping: no new requests, those in flight may finish", "drain", k.g.options.Config.Drain)
	if err := k.g.Close(); err != nil {
		o.Log.Error("records were lost", "lost", k.g.shared.sink.Lost(), "err", err) // they are counted, too; the stop itself did not fail
	}
	o.Log.Info("stopped: no request is in flight")
	return nil
}

// page returns the options of the HTTP server.
func (k *supervisor) page(reg *prometheus.Registry, board *live.Board, comparisons *metrics.Comparisons) web.Options {
	w := k.options.Config.Web
	o := web.Options{
		Listen: w.Listen, ConfigFile: w.ConfigFile, Registry: reg, Version: k.options.Version, Log: k.options.Log,
		Lifecycle: w.EnableLifecycle, Profiling: w.EnablePprof, Live: board.Handler(),
		Pause: k.pause, Config: k.show, RestartComparison: k.restartComparison,
		Comparisons: func() ([]byte, error) { return comparisonsJSON(comparisons.Now()) },
	}
	if k.options.Load != nil {
		o.Reload = k.reloaded
	}
	return o
}
