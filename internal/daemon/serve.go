package daemon

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"replayd/internal/comparison"
	"replayd/internal/config"
	"replayd/internal/fault"
	"replayd/internal/gpu"
	"replayd/internal/live"
	"replayd/internal/measure"
	"replayd/internal/metrics"
	"replayd/internal/replay"
	"replayd/internal/scarce"
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

	// Started is called when everything runs, with the address and a function that returns the ledger of all requests;
	// nil: not called.
	Started func(url string, ledger func() measure.Ledger)

	Load   func() (config.Config, error) // reads the configuration again; nil: there is no reload
	Hangup <-chan os.Signal              // each signal reloads; nil: none
	Watch  *config.Watcher               // checked every few seconds: a change reloads; nil: none

	// Runs is called with each configuration that takes effect, the first time before its files are opened; nil: not
	// called.
	Runs func(config.Config)

	// Over is called at the end for each workload, if the configuration says exit_when_done: with its requests, and with
	// why it ended early, which is ErrCut if a stop cut its plan short; nil: it did not.
	Over func(of config.Workload, l measure.Ledger, early error)

	change func(*Options) // for tests; nil: none
}

// ErrCut says that a workload was stopped before its plan was over.
var ErrCut = errors.New("stopped before its plan was over")

// ErrBuild wraps the faults of a configuration or of the files that it names.
type ErrBuild struct{ Err error }

func (e *ErrBuild) Error() string { return e.Err.Error() }

// Unwrap returns the faults.
func (e *ErrBuild) Unwrap() error { return e.Err }

// Serve runs a configuration, and those of later reloads, until ctx is cancelled and the requests in flight have
// drained, until hard is cancelled, or, with exit_when_done, until all workloads are over. Records that cannot be
// written are logged and counted, and are no error. The series of a workload that is over stay on /metrics. The stop is
// the start in reverse: requests first, the page last, so that a last scrape sees how the requests ended. A stop waits
// for nothing that is stuck: then the error is a LeftError.
func Serve(ctx, hard context.Context, o ServeOptions) (err error) {
	reg := prometheus.NewRegistry()
	process := metrics.NewProcess(reg, os.DirFS("/"), time.Now(), o.LogDropped)
	l := o.Config.Web.Links()
	metrics.Link(reg, l.External, l.Runbook, l.Dashboards)
	engines, routers := scrape.NewCollector(reg, scrape.Engines), scrape.NewCollector(reg, scrape.Routers)
	gpus, comparisons := gpu.NewCollector(reg), comparison.NewCollector(reg)
	board := live.New(live.Options{
		Version: o.Version, Engines: engines.Values, GPUs: gpus.Values, Comparisons: comparisons.Now,
	})
	work, stop := context.WithCancel(ctx)
	defer stop()
	detach := context.AfterFunc(hard, stop)
	defer detach()
	warnDescriptors(o.Log, &o.Config, scarce.DescriptorLimit())
	k := newSupervisor(work, o, process)
	k.watchdog = newWatchdog(o.Log, (&Options{Board: board}).note)
	p, err := openPage(ctx, k.page(reg, board, comparisons), stop) // if the page ends, the daemon stops
	if build := (*ErrBuild)(nil); errors.As(err, &build) {
		if all := Check(work, o.Config, o.Log, nil); all != nil { // reports the other faults, too
			build.Err = all
		}
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close(k.files())) }()

	failures := newFailureLog(o.Log)
	meter := metrics.NewMeter(reg)
	meter.Overflow.LogTo(o.Log)
	engines.Overflow, routers.Overflow, gpus.Overflow = meter.Overflow, meter.Overflow, meter.Overflow
	options := Options{
		Config: o.Config, Meter: meter, Board: board, Engines: engines, Routers: routers, GPUs: gpus, Comparisons: comparisons,
		UserAgent: "replayd/" + o.Version, Log: o.Log, Observers: o.Observers, LogFailure: failures.add,
		Patient: true, watchdog: k.watchdog,
		Failed: func(err error) {
			o.Log.Error("stopped early: the other workloads continue", "err", err)
			board.Note(time.Now(), slog.LevelError, err.Error())
		},
	}
	if o.change != nil {
		o.change(&options)
	}
	k.g, err = startWithin(work, func() (*Generation, error) { return Build(work, options) })
	if errors.Is(err, errSlowStart) {
		return err
	}
	if err != nil {
		if work.Err() != nil {
			return nil // the daemon was stopped
		}
		return &ErrBuild{err}
	}
	if err := k.g.ClaimState(work, o.Config.Drain); err != nil {
		closed := k.g.Close()
		if work.Err() != nil {
			return closed // the daemon was stopped
		}
		return errors.Join(err, closed)
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
	k.run(work, hard, stop)
	o.Log.Info("stopping: no new requests, those in flight may finish", "drain", k.g.options.Config.Drain)
	err = k.g.Close()
	if left := (*LeftError)(nil); errors.As(err, &left) {
		return err
	}
	if err != nil {
		// they are counted, too; the stop itself did not fail
		o.Log.Error("records were lost", "lost", k.g.shared.sink.Lost(), "err", err)
	}
	o.Log.Info("stopped: no request is in flight")
	if k.g.options.Config.ExitWhenDone && o.Over != nil {
		for _, w := range k.g.workloads {
			o.Over(w.config, w.count.Ledger(), w.early())
		}
	}
	return nil
}

// page returns the options of the HTTP server.
func (k *supervisor) page(reg *prometheus.Registry, board *live.Board, comparisons *comparison.Collector) web.Options {
	w := k.options.Config.Web
	o := web.Options{
		Listen: w.Listen, ConfigFile: w.ConfigFile, Registry: reg, Version: k.options.Version, Log: k.options.Log,
		Healthy: k.watchdog.healthy, Lifecycle: w.EnableLifecycle, Profiling: w.EnablePprof, Live: board.Handler(),
		MaxConnections: func() int { return int(k.visitors.Load()) }, AllowedHosts: w.Hosts(),
		Pause: k.pause, Config: k.show, RestartComparison: k.restartComparison,
		Comparisons: func() ([]byte, error) { return comparison.JSON(comparisons.Now()) },
	}
	if k.options.Load != nil {
		o.Reload = k.reloaded
	}
	return o
}

// A page is the HTTP server while it runs.
type page struct {
	*web.Server
	end  context.CancelFunc
	done chan error
}

// openPage serves at the address. Scrapes are refused until Ready. lost is called if the server ends by itself.
func openPage(ctx context.Context, o web.Options, lost func()) (*page, error) {
	s, err := web.Listen(o)
	if bad, is := errors.AsType[fault.Fault](err); is && bad.Key == web.ConfigFile {
		return nil, &ErrBuild{err}
	}
	if err != nil {
		return nil, err
	}
	serving, end := context.WithCancel(context.WithoutCancel(ctx))
	p := &page{Server: s, end: end, done: make(chan error, 1)}
	go func() { // close waits for it
		err := s.Run(serving)
		if serving.Err() == nil {
			lost()
		}
		p.done <- err
	}()
	return p, nil
}

// close waits for answers in progress until the limit, if any. Its error says why the server ended by itself.
func (p *page) close(limit <-chan struct{}) error {
	p.end()
	select {
	case err := <-p.done:
		return err
	case <-limit: // the end of the process cuts them
		return nil
	}
}
