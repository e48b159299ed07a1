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
	"replayd/internal/schedule"
	"replayd/internal/synth"
	"replayd/internal/token"
	"replayd/internal/trace"
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

// A workload is one runner and the target that it needs.
type workload struct {
	runner *replay.Runner
	target string
	trace  *trace.File
	plan   *schedule.Plan
	name   string
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
		if err := g.addWorkload(ctx, w); err != nil {
			errs = append(errs, fmt.Errorf("workload %s: %w", w.Name, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(err, g.Close())
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

func (g *Generation) addWorkload(ctx context.Context, w config.Workload) error {
	block := int(w.Trace.BlockTokens)
	if w.Trace.BlockTokens == config.AutoValue {
		block = 0
	}
	file, err := trace.Open(ctx, w.Trace.Path, trace.Options{
		Format: trace.Format(w.Trace.Format), BlockTokens: block, Strict: w.Trace.Strict, Stdin: g.options.Stdin,
	})
	if err != nil {
		return err
	}
	g.closers = append(g.closers, file)
	for _, warning := range file.Stats.Warnings {
		g.options.Log.Warn("trace", "workload", w.Name, "warning", warning)
	}
	plan, err := schedule.New(schedule.FromFile(file), schedule.Options{
		Arrival: schedule.Arrival(w.Arrival), Speed: w.Speed,
		From: time.Duration(w.Trace.From), To: time.Duration(w.Trace.To),
		Mode: schedule.Mode(w.Repeat.Mode), Phase: schedule.Phase(w.Repeat.Phase), Every: time.Duration(w.Repeat.Every),
		Gap: time.Duration(w.Repeat.Gap), Offset: time.Duration(w.Repeat.Offset),
		Shard: schedule.Shard{Index: int(w.Shard.Index), Of: w.Shard.Of},
	})
	if err != nil {
		return err
	}
	words, err := token.List(w.Prompt.Words)
	if err != nil {
		return err
	}
	prompter, err := synth.New(synth.Options{
		Words: words, Form: synth.Form(w.Prompt.Form), Seed: w.Prompt.Seed, BlockTokens: file.Stats.BlockTokens,
	})
	if err != nil {
		return err
	}
	target := g.targets[w.Target]
	observers := g.options.Observers
	if g.sink != nil {
		observers = append(observers[:len(observers):len(observers)], g.sink)
	}
	runner, err := replay.New(replay.Workload{
		Name: w.Name, Plan: plan, Prompt: prompter, Salt: synth.Salt(w.Prompt.Salt), Client: target.client, Target: target.watch,
		Count: g.options.Meter.Workload(g.labels(w), measure.WorkloadOptions{
			SLO:        measure.SLO{TTFT: time.Duration(w.SLO.TTFT), TPOT: time.Duration(w.SLO.TPOT), E2E: time.Duration(w.SLO.E2E)},
			Trace:      traceInfo(file.Stats),
			FreeOutput: g.target(w.Target).Output != "exact",
		}),
		Log: g.options.Log, Observers: observers, Dropped: g.options.Dropped,
		Lanes: w.Lanes, Overload: replay.Overload(w.Overload), MaxWait: time.Duration(w.MaxWait), Ahead: int(w.Ahead.Bytes),
		MaxInput: w.Trace.MaxInput, MaxOutput: w.Trace.MaxOutput, OverLimit: replay.OverLimit(w.Trace.OverLimit),
		Calibrate: calibrates(w),
		Drain:     time.Duration(g.options.Config.Drain), Epoch: w.Epoch, Rows: w.Rows,
	})
	if err != nil {
		return err
	}
	g.workloads = append(g.workloads, &workload{runner: runner, target: w.Target, trace: file, plan: plan, name: w.Name})
	return nil
}

// calibrates says whether a server may put tokens around a workload's prompts: a chat template, or the token that some
// models have at the beginning of any text. Token ids are taken as they are.
func calibrates(w config.Workload) bool { return w.Prompt.Calibrate && w.Prompt.Form == "text" }

// target is the configuration of a target that is there.
func (g *Generation) target(name string) config.Target {
	for _, t := range g.options.Config.Targets {
		if t.Name == name {
			return t
		}
	}
	return config.Target{}
}

func (g *Generation) labels(w config.Workload) measure.Labels {
	return measure.Labels{Workload: w.Name, Target: w.Target, Model: g.target(w.Target).Model}
}

func traceInfo(s trace.Stats) measure.TraceInfo {
	return measure.TraceInfo{
		Path: s.Path, Format: string(s.Format), SHA256: s.SHA256, Requests: s.Requests, BlockTokens: s.BlockTokens,
		PrefixHitRatio: s.Prefix.HitTokenRatio,
	}
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
	usable := map[string]context.Context{} // cancelled when a target cannot be used
	for name, t := range g.targets {
		work, stop := context.WithCancel(ctx)
		defer stop()
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
			if err := w.runner.Run(usable[w.target], hard); err != nil {
				g.options.Failed(fmt.Errorf("workload %s: %w", w.name, err))
			}
		})
	}
	workloads.Wait()
	endSide()
	targets.Wait()
	sink.Wait()
}

// Requests is how many requests there will be, when that is known before: one pass over whole traces.
func (g *Generation) Requests() int {
	n := 0
	for i, w := range g.options.Config.Workloads {
		if w.Repeat.Mode != "once" || w.Trace.From != 0 || w.Trace.To != 0 || w.Shard.Of > 1 {
			return 0
		}
		rows := g.workloads[i].trace.Stats.Requests
		if w.Rows > 0 {
			rows = min(rows, w.Rows)
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
