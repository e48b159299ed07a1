package daemon

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"replayd/internal/export"
	"replayd/internal/gpu"
	"replayd/internal/measure"
	"replayd/internal/metrics"
	"replayd/internal/scarce"
	"replayd/internal/schedule"
	"replayd/internal/scrape"
	"replayd/internal/web"
)

// Once runs a configuration whose plans end.
type Once struct {
	Options // Run sets its Meter

	Serve      bool          // serve Config.Web meanwhile
	Version    string        // on the landing page
	LogDropped func() uint64 // number of log lines that were not written; nil: 0

	WaitReady time.Duration               // longest wait for the targets to answer; 0: no wait
	Tried     func(url string, err error) // called with the result of each try to reach a target; not nil with WaitReady

	// Epoch is called when the targets are ready, and returns the start of all plans; nil: as configured.
	Epoch   func(ready time.Time) time.Time
	Started func(g *Generation) // called when everything runs

	// Sampler takes what engines and GPUs report from before the first request of the plan to after the last end, every
	// SampleEvery meanwhile; nil: nothing does. With it, and with a comparison, engines and GPUs are read even if no page
	// is served.
	Sampler     *export.Sampler
	SampleEvery time.Duration

	// Patience is the time after the first due row without any connection after which the run is cut, with ErrUnreached
	// in its error. 0: the run is not cut for that.
	Patience time.Duration

	// Limit is the time after the start of the plans at which requests in flight are aborted; 0: they are not.
	Limit time.Duration

	// Ended is called when all requests have ended, with their ledger, as on /metrics, and with what cut the run: ctx's
	// cause, ErrUnreached or nil. /metrics is still served then.
	Ended func(ledger measure.Ledger, cut error)
	Hold  time.Duration // how long /metrics is served after that; ends with ctx, so it is 0 after ctx was cancelled
}

// Run returns when the plans are over and every request has ended, or when ctx or hard has stopped them. If the page
// fails meanwhile, the run goes on without it, and Run returns the error at the end.
func (o Once) Run(ctx, hard context.Context) (err error) {
	reg := prometheus.NewRegistry()
	process := metrics.NewProcess(reg, os.DirFS("/"), time.Now(), o.LogDropped)
	l := o.Config.Web.Links()
	metrics.Link(reg, l.External, l.Runbook, l.Dashboards)
	o.Meter = metrics.NewMeter(reg)
	o.Meter.Overflow.LogTo(o.Log)
	ready, address := func() {}, ""
	pages := &runPages{once: &o}
	if o.Serve || o.Sampler != nil || len(o.Config.Comparisons) > 0 { // else nobody reads them
		o.Engines, o.Routers, o.GPUs = scrape.NewCollector(reg, scrape.Engines), scrape.NewCollector(reg, scrape.Routers), gpu.NewCollector(reg)
		o.Engines.Overflow, o.Routers.Overflow, o.GPUs.Overflow = o.Meter.Overflow, o.Meter.Overflow, o.Meter.Overflow
		o.BeforeFirst = pages.begin
	}
	hard, drop := context.WithCancel(hard)
	defer drop()
	work, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	flying, abort := context.WithCancel(hard) // pages are read after it all the same
	defer abort()
	endLimit := o.limit(func(why error) {
		giveUp(why)
		abort()
	})
	defer endLimit()
	o.watchdog = newWatchdog(o.Log, o.note)
	var limit <-chan struct{} // of a stop
	limited := scarce.DescriptorLimit()
	warnDescriptors(o.Log, &o.Config, limited)
	if o.Serve {
		room := visitorsOf(&o.Config, limited)
		p, failure := openPage(ctx, web.Options{
			Listen: o.Config.Web.Listen, ConfigFile: o.Config.Web.ConfigFile, Registry: reg, Version: o.Version, Log: o.Log,
			Healthy: o.watchdog.healthy, MaxConnections: func() int { return room }, AllowedHosts: o.Config.Web.AllowedHosts,
		}, func() {})
		if failure != nil {
			return failure
		}
		defer func() { err = errors.Join(err, p.close(limit)) }()
		ready, address = p.Ready, p.URL()
	}
	g, err := startWithin(ctx, func() (*Generation, error) { return o.prepare(ctx) })
	if err != nil {
		return err
	}
	process.Reloaded(nil, time.Now())
	pages.of = g
	g.Start(work, flying)
	pages.beginBy(work)
	limit = g.shared.ending.files
	ready()
	o.Started(g)
	endLookout := g.watchUnreached(o.Patience, func(why error) {
		giveUp(why)
		drop() // no request has a connection to drain
	})
	cut := g.outlast(work)
	if errors.Is(cut, errLimit) {
		cut = nil
	}
	endLookout()
	pages.end(ctx, hard)
	err = g.Close()
	if errors.Is(cut, ErrUnreached) {
		err = errors.Join(cut, err)
	}
	o.Ended(o.Meter.Ledger(), cut)
	if o.Hold > 0 && ctx.Err() == nil {
		o.awaitLastScrape(ctx, address)
	}
	return err
}

// errLimit ends a run at its Limit, which is no failure.
var errLimit = errors.New("the grace period is over")

// limit has abort called at Limit, until the run ends.
func (o *Once) limit(abort func(error)) (end func()) {
	if o.Limit == 0 {
		return func() {}
	}
	timer := time.AfterFunc(math.MaxInt64, func() {
		o.Log.Info("the grace period is over: requests in flight are aborted")
		abort(errLimit)
	})
	if epoch := o.Config.Workloads[0].Epoch; !epoch.IsZero() {
		timer.Reset(time.Until(epoch) + o.Limit)
	}
	begin := o.BeforeFirst
	o.BeforeFirst = func(ctx context.Context) {
		if begin != nil {
			begin(ctx)
		}
		timer.Reset(o.Limit)
	}
	return func() { timer.Stop() }
}

// prepare builds the generation and waits for its targets. All faults in files are reported before the wait.
func (o Once) prepare(ctx context.Context) (*Generation, error) {
	g, err := Build(ctx, o.Options)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx) // the run was stopped
		}
		return nil, &ErrBuild{err}
	}
	if err := g.OpenRecords(); err != nil {
		return nil, &ErrBuild{errors.Join(err, g.Close())}
	}
	if o.WaitReady > 0 {
		if err := g.Await(ctx, o.WaitReady, o.Tried); err != nil {
			return nil, errors.Join(err, g.Close())
		}
	}
	if o.Epoch != nil {
		epoch := o.Epoch(time.Now())
		for _, w := range g.workloads {
			w.config.Epoch = epoch
		}
	}
	for _, w := range g.workloads {
		w.warnOver(o.Log)
	}
	return g, nil
}

// warnOver says that a plan with a start in the past was over before the run began: nothing of it is due.
func (w *workload) warnOver(log *slog.Logger) {
	start := w.config.Epoch
	if start.IsZero() || w.config.Repeat.Mode != schedule.Once || w.plan.Closed() {
		return
	}
	if over := start.Add(w.plan.Period(schedule.Loop{})); over.Before(time.Now()) {
		log.Warn("no row is due: the plan was over before the run began", "workload", w.config.Name,
			"start", start.UTC().Format(time.RFC3339), "over", over.UTC().Format(time.RFC3339))
	}
}

// outlast waits until all plans are over, or until the requests in flight have ended after ctx was cancelled. It
// returns the cause if that cut a plan short, as the workload tells: it can be over before.
func (g *Generation) outlast(ctx context.Context) (cut error) {
	say := sync.OnceFunc(func() {
		g.options.Log.Info("stopping: no new requests, those in flight may finish", "drain", g.options.Config.Drain)
	})
	reported := context.AfterFunc(ctx, func() {
		if slices.ContainsFunc(g.workloads, func(w *workload) bool { return !w.ended() }) {
			say()
		}
	})
	defer reported()
	for _, w := range g.workloads {
		if !endsBefore(w.over, g.shared.ending.workloads) || w.current().Cut() { // one that is stuck is cut, too
			cut = context.Cause(ctx)
			say() // without requests in flight, the workload can end before ctx is looked at above
		}
	}
	return cut
}

// awaitLastScrape waits for Hold, so that a last scrape sees the end of the run.
func (o Once) awaitLastScrape(ctx context.Context, address string) {
	hold, cancel := context.WithTimeout(ctx, o.Hold)
	defer cancel()
	o.Log.Info("holding: /metrics stays up for a last scrape", "url", address+"/metrics", "until", time.Now().Add(o.Hold).Format(time.RFC3339))
	<-hold.Done()
}
