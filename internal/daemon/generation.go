// Package daemon is the life of the process: it builds everything that a configuration asks for, runs it, and stops
// it in the reverse order.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"replayd/internal/config"
	"replayd/internal/measure"
	"replayd/internal/openai"
	"replayd/internal/replay"
)

// Options of a Generation.
type Options struct {
	Config    config.Config
	Meter     *measure.Meter
	UserAgent string
	Log       *slog.Logger
	Stdin     io.Reader // what the trace "-" is

	Observers []replay.Observer
	Dropped   func(measure.DropReason)

	// Failed hears of what ended before its time: a trace that changed while it was read, a target that cannot be
	// used. Everything else goes on.
	Failed func(error)
}

// A Generation is everything that one configuration asks for, built and checked, and then run.
type Generation struct {
	options   Options
	targets   map[string]*server
	workloads []*workload
	sink      *measure.Sink
	closers   []io.Closer // in the order of opening
}

// A server is a target with the watch over it.
type server struct {
	client *openai.Client
	watch  *replay.Target
}

// Build opens and checks all that the configuration names. Nothing runs and nothing is sent before Run. The error
// holds every fault; then nothing stays open.
func Build(ctx context.Context, o Options) (*Generation, error) {
	g := &Generation{options: o, targets: map[string]*server{}}
	var errs []error
	for _, t := range o.Config.Targets {
		errs = append(errs, g.addTarget(t))
	}
	if o.Config.Records.Path != "" {
		errs = append(errs, g.addSink(o.Config.Records.Path))
	}
	for _, w := range o.Config.Workloads {
		if g.targets[w.Target] == nil {
			continue // its target's error says why
		}
		if err := g.openWorkload(ctx, w); err != nil {
			if len(o.Config.Workloads) > 1 {
				err = &workloadError{w.Name, err}
			}
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	for _, w := range g.workloads { // last, so that nothing of a bad configuration comes on the page
		g.addRunner(w)
	}
	return g, nil
}

func (g *Generation) addTarget(t config.Target) error {
	c, err := openai.New(openai.Target{
		Name: t.Name, URL: t.URL, API: openai.API(t.API), Model: t.Model, HTTP: t.HTTP.HTTPClientConfig,
		ExtraBody: t.ExtraBody, Output: openai.OutputMode(t.Output), Idle: time.Duration(t.Idle), UserAgent: g.options.UserAgent,
		Timeouts: openai.Timeouts{
			Connect: time.Duration(t.Timeouts.Connect), FirstToken: time.Duration(t.Timeouts.FirstToken),
			Stall: time.Duration(t.Timeouts.Stall), Total: time.Duration(t.Timeouts.Total),
		},
	})
	if err != nil {
		return err
	}
	probe := false
	for _, w := range g.options.Config.Workloads {
		probe = probe || w.Target == t.Name && calibrates(w)
	}
	g.targets[t.Name] = &server{client: c, watch: replay.NewTarget(c, probe, func(model string) {
		g.options.Meter.TargetInfo(t.Name, model, t.API)
	}, g.options.Log)}
	g.closers = append(g.closers, closer(c.Close))
	return nil
}

// A closer makes an io.Closer of a func that cannot fail.
type closer func()

func (c closer) Close() error { c(); return nil }

func (g *Generation) addSink(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("records: %w", err)
	}
	g.closers = append(g.closers, f)
	g.sink = measure.NewSink(f, g.options.Meter.RecordErrors)
	return nil
}

// Run replays all workloads until their plans are over or ctx is cancelled and the drain is over; hard cuts what is
// in flight. It returns when nothing of the generation runs any more.
func (g *Generation) Run(ctx, hard context.Context) {
	var sink, targets, workloads sync.WaitGroup
	side, endSide := context.WithCancel(context.WithoutCancel(ctx))
	defer endSide()
	if g.sink != nil {
		sink.Go(func() {
			if err := g.sink.Run(side); err != nil {
				g.options.Failed(err)
			}
		})
	}
	ctx, endAll := context.WithCancel(ctx)
	defer endAll()
	usable := map[string]context.Context{} // cancelled when a target cannot be used
	for name, t := range g.targets {
		work, stop := context.WithCancel(ctx)
		usable[name] = work
		targets.Go(func() {
			if err := t.watch.Run(side); err != nil {
				g.options.Failed(fmt.Errorf("target %s: %w", name, err))
				stop()
			}
		})
	}
	for _, w := range g.workloads {
		workloads.Go(func() {
			if err := w.runner.Run(usable[w.config.Target], hard); err != nil {
				g.options.Failed(err)
			}
		})
	}
	workloads.Wait()
	endSide()
	targets.Wait()
	sink.Wait()
}

// Requests is how many requests there will be, when that is known before: one pass over whole traces. 0 when it is not.
func (g *Generation) Requests() int {
	n := 0
	for _, w := range g.workloads {
		c := w.config
		filtered := c.Trace.OverLimit == "filter" && (c.Trace.MaxInput > 0 || c.Trace.MaxOutput > 0)
		if c.Repeat.Mode != "once" || c.Trace.From != 0 || c.Trace.To != 0 || c.Shard.Of > 1 || filtered {
			return 0
		}
		rows := w.trace.Stats.Requests
		if c.Rows > 0 {
			rows = min(rows, c.Rows)
		}
		n += rows
	}
	return n
}

// Close frees what Build opened. Call it when Run has returned, or instead of Run.
func (g *Generation) Close() error {
	var errs []error
	for i := len(g.closers) - 1; i >= 0; i-- {
		errs = append(errs, g.closers[i].Close())
	}
	g.closers = nil
	return errors.Join(errs...)
}
