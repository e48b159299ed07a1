// Package daemon runs a configuration: it builds everything that the configuration names, runs it, replaces it on a reload, and
// stops it in the reverse order.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"replayd/internal/canary"
	"replayd/internal/config"
	"replayd/internal/dispatch"
	"replayd/internal/gpu"
	"replayd/internal/live"
	"replayd/internal/measure"
	"replayd/internal/metrics"
	"replayd/internal/records"
	"replayd/internal/replay"
	"replayd/internal/scrape"
	"replayd/internal/synth"
)

// Options of a Generation. All except the configuration are the same for every generation of a process.
type Options struct {
	Config  config.Config
	Meter   *metrics.Meter
	Board   *live.Board       // nil: there is no live page
	Engines *scrape.Collector // nil: no engine is scraped
	GPUs    *gpu.Collector    // nil: no GPU is read

	Comparisons *metrics.Comparisons                  // shows the comparisons; nil: nothing shows them
	Judged      func(name string, j canary.Judgement) // called with the state of each comparison every second and after the last request; nil: not called
	Block       func(name string, b canary.Block)     // called before Judged with each block that has ended since; nil: not called
	Pair        func(name string, p *canary.Pair)     // called before Judged with each pair that has ended since; nil: not called

	UserAgent string
	Log       *slog.Logger
	Stdin     io.Reader // read as the trace "-"

	Observers  []replay.Observer
	Warmed     []replay.Observer                                  // observe warm-up requests, which Observers do not
	Session    func(*measure.Session)                             // called with every session that has ended; it must not block. nil: not called
	Saved      func(replay.Sent)                                  // called with every request that was written; nil: not called
	Reuse      *synth.Reuse                                       // counts the tokens that prompts of all workloads share; nil: not counted
	Clipped    *atomic.Int64                                      // counts requests that were clipped; nil: not counted
	LogFailure func(workload, what string, n int, id, err string) // called with n requests that failed or were dropped; nil: not called

	// Patient keeps workloads alive after faults that can pass: a trace that has changed is read again, and workloads wait for a
	// target that lists several models. Without it these are errors.
	Patient bool

	// Failed is called with the error that ended a workload early: a trace that changed while it was read, a target that
	// cannot be used. The other workloads go on.
	Failed func(error)

	// For tests in virtual time: connections, the pacer's sleeper and the wall clock. nil: TCP, the most exact sleeper, time.Now.
	Dial    func(ctx context.Context, network, address string) (net.Conn, error)
	Sleeper func() replay.Sleeper
	Wall    func() time.Time
}

// A Generation is everything that one configuration names, built, checked and then run. It takes over the running parts of the
// generation before that have not changed.
type Generation struct {
	options     Options
	servers     map[string]*server // by the target's name
	scrapers    []*scraper
	workloads   []*workload
	named       map[string]*workload // by name
	comparisons []*comparison
	places      map[string]place // in comparisons, by the workload's name
	shared      *shared
	checks      bool      // only finds faults: no workload stays open
	asked       []*server // kept until the generation runs: settle waits for their answers
	paused      bool      // all workloads are paused, and so are those that a reload adds
}

// shared is the state that all generations of a process share.
type shared struct {
	sink     *records.Sink
	endSink  context.CancelFunc // ends everything that outlives the workloads; nil: nothing runs
	sinkDone chan error
	pacer    *replay.Pacer    // of all workloads; nil: nothing runs
	waiting  dispatch.Waiting // of all workloads
	paced    sync.WaitGroup
	running  sync.WaitGroup                        // workloads, watches over targets, scrapers
	engines  atomic.Pointer[map[string]loadSource] // of the latest generation, by the target's name
	state    stateStore
}

// Build opens and checks everything that the configuration names. Nothing runs and nothing is sent before Start. The error has
// every fault; in that case nothing stays open.
func Build(ctx context.Context, o Options) (*Generation, error) {
	sleeper, err := o.sleeper()
	if err != nil {
		return nil, err
	}
	sink := records.NewSink(o.Meter.RecordErrors, o.Log)
	sink.Ledgers = o.Meter.AppendLedgers
	g := &Generation{options: o, shared: &shared{sink: sink, pacer: replay.NewPacer(sleeper)}}
	g.shared.state.log = o.Log
	if o.Comparisons != nil {
		g.shared.state.errors = o.Comparisons.StateErrors
	}
	return g, g.build(ctx, nil)
}

func (o *Options) sleeper() (replay.Sleeper, error) {
	if o.Sleeper != nil {
		return o.Sleeper(), nil
	}
	return replay.NewSleeper()
}

// Next builds the generation that will replace this one, and gives new targets up to 5 s to answer. Meanwhile only Pause may be
// called on this one: one successor is built at a time. An error changes nothing.
func (g *Generation) Next(ctx context.Context, c config.Config) (*Generation, error) {
	next := &Generation{options: g.options, shared: g.shared}
	next.options.Config = c
	if err := next.build(ctx, g); err != nil {
		return nil, err
	}
	next.settle(ctx, g)
	return next, nil
}

func (g *Generation) build(ctx context.Context, old *Generation) error {
	err := g.options.Config.Refuse(g.open(ctx, old, nil))
	if err != nil {
		return errors.Join(err, g.discard())
	}
	g.options.Config.Places = nil // frees memory: without faults no line is needed
	return nil
}

// open opens and checks everything that the configuration names, except keys with a known fault, and returns the other faults.
func (g *Generation) open(ctx context.Context, old *Generation, known config.Faults) config.Faults {
	c, around := &g.options.Config, known.Around()
	g.servers, g.named = map[string]*server{}, map[string]*workload{}
	probed := probedTargets(c)
	faults := g.checkWeb(old)
	for i, t := range c.Targets {
		at := fmt.Sprintf("targets[%d]", i)
		if around[at+".name"] {
			continue // another target may have the name
		}
		found := g.addServer(at, t, probed[t.Name], old)
		sound := !around[at+".url"] && !around[at+".metrics"]
		if sound && (len(found) == 0 || t.Metrics.URL != "") { // else the page is where requests go, and has the same faults
			found = append(found, g.addEngine(at, t, old)...)
		}
		faults = append(faults, found...)
	}
	for i, one := range c.GPUs {
		if at := fmt.Sprintf("gpus[%d]", i); !around[at] {
			faults = append(faults, g.addGPU(at, one, old)...)
		}
	}
	g.addComparisons(old, around)
	for i := range c.Workloads {
		w, found := g.openWorkload(ctx, fmt.Sprintf("workloads[%d]", i), c.Workloads[i], old, around)
		faults = append(faults, found...)
		g.keepOpened(w)
	}
	faults = append(faults, g.openCandidates(ctx, old, around)...)
	return faults.Without(known)
}

// keepOpened adds an opened workload; nil: it has faults.
func (g *Generation) keepOpened(w *workload) {
	switch {
	case w == nil:
	case g.checks:
		_ = w.rows.Close() // it was only checked
	default:
		g.workloads = append(g.workloads, w)
		g.named[w.config.Name] = w
	}
}

// probedTargets returns the targets whose chat template is measured, by name.
func probedTargets(c *config.Config) map[string]bool {
	probed, calibrated := map[string]bool{}, map[string]bool{}
	for _, w := range c.Workloads {
		calibrated[w.Name] = calibrates(w)
		probed[w.Target] = probed[w.Target] || calibrates(w)
	}
	for _, one := range c.Comparisons {
		probed[one.Candidate] = probed[one.Candidate] || calibrated[one.Workload]
	}
	return probed
}

// discard closes what was opened for a generation that never ran, without the parts of the generation before.
func (g *Generation) discard() error {
	errs := []error{g.discardScrapers()}
	if g.shared.pacer != nil && g.shared.endSink == nil { // the pacer will never run
		g.shared.pacer.Close()
	}
	for _, w := range g.workloads {
		if !w.started() {
			errs = append(errs, w.rows.Close())
		}
	}
	g.releaseAsked()
	for _, s := range g.servers {
		s.release()
	}
	return errors.Join(errs...)
}

// OpenRecords directs the records to this generation's file. After an error the sink tries again.
func (g *Generation) OpenRecords() error {
	r := g.options.Config.Records
	return g.shared.sink.Use(records.Options{Path: r.Path, MaxBytes: int64(r.MaxBytes), Keep: r.Keep, Gzip: r.Gzip})
}

// Start replays all workloads. When ctx is cancelled they drain; cancelling hard aborts the requests in flight.
func (g *Generation) Start(ctx, hard context.Context) {
	side, end := context.WithCancel(context.WithoutCancel(ctx))
	g.shared.endSink, g.shared.sinkDone = end, make(chan error, 1)
	go func() { g.shared.sinkDone <- g.shared.sink.Run(side) }() // Close waits for it
	g.shared.paced.Go(func() { g.shared.pacer.Run(side) })
	g.startScrapers(ctx)
	g.shared.state.use(g.options.Config.State)
	g.startComparisons(ctx)
	g.shared.paced.Go(func() { g.shared.state.run(side) })
	g.shared.waiting.Bound(int64(g.options.Config.MaxWaiting))
	for _, w := range g.workloads {
		g.start(ctx, hard, w, handover{})
	}
}

// Requests returns the number of requests if it is known in advance, which it is for one pass over whole traces; else 0.
func (g *Generation) Requests() int {
	n := 0
	for _, w := range g.workloads {
		c := w.config
		filtered := c.Trace.OverLimit == "filter" && (c.Trace.MaxInput > 0 || c.Trace.MaxOutput > 0 || c.Trace.MaxContext > 0)
		if c.Repeat.Mode != "once" || !c.Epoch.IsZero() && c.Epoch.Before(time.Now()) || c.Trace.From != 0 || c.Trace.To != 0 || c.Shard.Of > 1 || filtered {
			return 0
		}
		rows := w.rows.stats.Requests
		if c.Rows > 0 {
			rows = min(rows, c.Rows)
		}
		n += rows
	}
	return n
}

// Close waits until this generation and those before it have ended, and frees their resources. It is called after they were
// told to stop, or instead of Start. The series stay registered.
func (g *Generation) Close() error {
	if g.shared.endSink == nil {
		return g.discard()
	}
	for _, w := range g.workloads {
		close(w.leave)
	}
	for _, s := range g.servers {
		s.release()
	}
	g.endScrapers(nil)
	g.shared.running.Wait()
	g.shared.endSink()
	g.endComparisons(nil)
	g.shared.paced.Wait()
	g.shared.state.write()
	return <-g.shared.sinkDone
}
