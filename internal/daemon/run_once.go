package daemon

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"replayd/internal/gpu"
	"replayd/internal/measure"
	"replayd/internal/metrics"
	"replayd/internal/scrape"
	"replayd/internal/web"
)

// Once runs a configuration whose plans end.
type Once struct {
	Options // Run sets its Meter

	Serve      bool          // serve Config.Web meanwhile
	Version    string        // on the landing page
	LogDropped func() uint64 // number of log lines that were not written; nil: 0

	WaitReady time.Duration                           // longest wait for the targets to answer; 0: no wait
	Tried     func(url string, err error)             // called with the result of each try to reach a target; not nil with WaitReady
	Epoch     func(ready time.Time) time.Time         // returns the start of all plans, called when the targets are ready; nil: as configured
	Started   func(requests int, now func() Progress) // called when everything runs; requests is Generation.Requests

	// Sample is called with the gathered metrics every SampleEvery, and once before the end; nil: not called. With it engines
	// and GPUs are read even if no page is served.
	Sample      func(at time.Time, page []*dto.MetricFamily)
	SampleEvery time.Duration

	// Patience is the time after the first due row without any connection after which the run is cut, with ErrUnreached in its
	// error. 0: the run is not cut for that.
	Patience time.Duration

	// Ended is called when all requests have ended, with their ledger, as on /metrics, and with what cut the run: ctx's cause,
	// ErrUnreached or nil. /metrics is still served then.
	Ended func(ledger measure.Ledger, cut error)
	Hold  time.Duration // how long /metrics is served after that; ends with ctx, so it is 0 after ctx was cancelled
}

// Run returns when the plans are over and every request has ended, or when ctx or hard has stopped them. If the page fails
// meanwhile, the run goes on without it, and Run returns the error at the end.
func (o Once) Run(ctx, hard context.Context, reg *prometheus.Registry) (err error) {
	process := metrics.NewProcess(reg, os.DirFS("/"), time.Now(), o.LogDropped)
	o.Meter = metrics.NewMeter(reg)
	ready, address := func() {}, ""
	if o.Serve || o.Sample != nil { // else nobody reads them
		o.Engines, o.GPUs = scrape.NewCollector(reg), gpu.NewCollector(reg)
	}
	if o.Serve {
		p, fault := openPage(ctx, web.Options{
			Listen: o.Config.Web.Listen, ConfigFile: o.Config.Web.ConfigFile, Registry: reg, Version: o.Version, Log: o.Log,
		}, func() {})
		if fault != nil {
			return fault
		}
		defer func() { err = errors.Join(err, p.close()) }()
		ready, address = p.Ready, p.URL()
	}
	g, err := o.prepare(ctx)
	if err != nil {
		return err
	}
	process.Reloaded(nil, time.Now())
	work, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	hard, drop := context.WithCancel(hard)
	defer drop()
	g.Start(work, hard)
	ready()
	o.Started(g.Requests(), g.Progress)
	endSampling := o.sample(reg)
	endLookout := g.lookout(o.Patience, func(why error) {
		giveUp(why)
		drop() // no request has a connection to drain
	})
	cut := g.outlast(work)
	endLookout()
	endSampling()
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
		g.setEpoch(o.Epoch(time.Now()))
	}
	return g, nil
}

// sample calls Sample repeatedly until the function that it returns is called.
func (o Once) sample(reg prometheus.Gatherer) (end func()) {
	if o.Sample == nil {
		return func() {}
	}
	take := func() {
		page, _ := reg.Gather() // the metrics that could be gathered
		o.Sample(time.Now(), page)
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(o.SampleEvery)
		defer tick.Stop()
		for take(); ; take() {
			select {
			case <-tick.C:
			case <-stop:
				take()
				return
			}
		}
	}()
	return func() {
		close(stop)
		<-done
	}
}

// outlast waits until all plans are over, or until the requests in flight have ended after ctx was cancelled. It returns the cause of
// the cancellation if that cut a plan short. The workload tells: it can be over before its cancellation is noticed here.
func (g *Generation) outlast(ctx context.Context) (cut error) {
	say := sync.OnceFunc(func() {
		g.options.Log.Info("stopping: no new requests, those in flight may finish", "drain", g.options.Config.Drain)
	})
	told := context.AfterFunc(ctx, func() {
		if !g.ended() {
			say()
		}
	})
	defer told()
	for _, w := range g.workloads {
		<-w.over
		if w.current().Cut() {
			cut = context.Cause(ctx)
			say() // without requests in flight, the workload can end before ctx is looked at above
		}
	}
	return cut
}

// ended reports whether all workloads are over.
func (g *Generation) ended() bool {
	for _, w := range g.workloads {
		if !w.ended() {
			return false
		}
	}
	return true
}

// awaitLastScrape waits for Hold, so that a last scrape sees the end of the run.
func (o Once) awaitLastScrape(ctx context.Context, address string) {
	timer := time.NewTimer(o.Hold)
	defer timer.Stop()
	o.Log.Info("holding: /metrics stays up for a last scrape", "url", address+"/metrics", "until", time.Now().Add(o.Hold).Format(time.RFC3339))
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
