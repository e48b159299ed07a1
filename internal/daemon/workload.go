package daemon

import (
	"context"
	"log/slog"
	"os"
	"reflect"
	"strings"
	"sync/atomic"
	"time"

	"replayd/internal/config"
	"replayd/internal/live"
	"replayd/internal/measure"
	"replayd/internal/openai"
	"replayd/internal/replay"
	"replayd/internal/schedule"
	"replayd/internal/synth"
	"replayd/internal/token"
	"replayd/internal/trace"
)

// A workload is a trace that was found to be good, its plan and its prompts, and then the runner over them.
type workload struct {
	config   config.Workload
	server   *server
	file     *trace.File
	stat     os.FileInfo // of the trace's path when it was opened; nil for a pipe
	plan     *schedule.Plan
	prompter *synth.Prompter

	// From its start on.
	runner  *replay.Runner
	before  atomic.Pointer[replay.Runner] // the one that it took over from, until that has ended
	count   *measure.Workload
	shown   *live.Workload // nil without a page
	engine  func() string  // how busy the target's engines are, in words; empty when they are not scraped
	stop    context.CancelFunc
	over    chan struct{} // closed when the runner has ended
	leave   chan struct{} // closed when nobody wants the workload any more
	removed atomic.Bool   // its series go with it
	failure atomic.Pointer[string]
}

// A workloadError tells which of several workloads each of its lines is about.
type workloadError struct {
	name string
	err  error
}

func (e *workloadError) Error() string {
	at := "workload " + e.name + ": "
	return at + strings.ReplaceAll(e.err.Error(), "\n", "\n"+at)
}

func (e *workloadError) Unwrap() error { return e.err }

// openWorkload does all of a workload that can be at fault, or takes it over from the generation before.
func (g *Generation) openWorkload(ctx context.Context, c config.Workload, old *Generation) (*workload, error) {
	before := old.workload(c.Name)
	same := before != nil && reflect.DeepEqual(before.config, c) && before.server == g.servers[c.Target] && before.failure.Load() == nil
	stat, _ := os.Stat(c.Trace.Path) // a fault is trace.Open's to tell
	if same && unchanged(before.stat, stat) {
		return before, nil
	}
	block := int(c.Trace.BlockTokens)
	if c.Trace.BlockTokens == config.AutoValue {
		block = 0
	}
	file, err := trace.Open(ctx, c.Trace.Path, trace.Options{
		Format: trace.Format(c.Trace.Format), BlockTokens: block, Strict: c.Trace.Strict, Stdin: g.options.Stdin,
	})
	if err != nil {
		return nil, err
	}
	if same && file.Stats.SHA256 == before.file.Stats.SHA256 { // only put in place anew
		before.stat = stat
		return before, file.Close()
	}
	w := &workload{config: c, server: g.servers[c.Target], file: file, stat: stat, over: make(chan struct{}), leave: make(chan struct{})}
	if err := w.open(); err != nil {
		_ = file.Close() // err is what matters
		return nil, err
	}
	for _, warning := range file.Stats.Warnings {
		g.options.Log.Warn("trace", "workload", c.Name, "warning", warning)
	}
	return w, nil
}

// unchanged says whether a path still holds the file that it held.
func unchanged(before, now os.FileInfo) bool {
	return before != nil && now != nil && os.SameFile(before, now) && before.Size() == now.Size() && before.ModTime().Equal(now.ModTime())
}

// open makes the plan and the prompts.
func (w *workload) open() (err error) {
	c := w.config
	if w.plan, err = schedule.New(schedule.FromFile(w.file), schedule.Options{
		Arrival: schedule.Arrival(c.Arrival), Speed: c.Speed,
		From: time.Duration(c.Trace.From), To: time.Duration(c.Trace.To),
		Mode: schedule.Mode(c.Repeat.Mode), Phase: schedule.Phase(c.Repeat.Phase), Every: time.Duration(c.Repeat.Every),
		Gap: time.Duration(c.Repeat.Gap), Offset: time.Duration(c.Repeat.Offset),
		Cron: c.Repeat.Cron, Timezone: c.Repeat.Timezone, Overlap: schedule.Overlap(c.Repeat.Overlap),
		Shard: schedule.Shard{Index: int(c.Shard.Index), Of: c.Shard.Of},
	}); err != nil {
		return err
	}
	words, err := token.List(c.Prompt.Words)
	if err != nil {
		return err
	}
	w.prompter, err = synth.New(synth.Options{
		Words: words, Form: synth.Form(c.Prompt.Form), Seed: c.Prompt.Seed, BlockTokens: w.file.Stats.BlockTokens,
	})
	return err
}

// workload is the one of a name; nil when there is none.
func (g *Generation) workload(name string) *workload {
	if g == nil {
		return nil
	}
	for _, w := range g.workloads {
		if w.config.Name == name {
			return w
		}
	}
	return nil
}

// A handover is what a workload takes over from the one that it replaces.
type handover struct {
	before *workload // nil: there was none
	at     time.Time // rows from this planned instant on are its own; zero: from now on
}

// start puts a workload's series on the page and lets it run.
func (g *Generation) start(ctx, hard context.Context, w *workload, from handover) {
	g.prepare(w, from)
	o, running := g.options, &g.shared.running
	if before := from.before; before != nil {
		w.before.Store(before.runner)
		running.Go(func() {
			<-before.over
			w.before.Store(nil)
		})
	}
	ctx, w.stop = context.WithCancel(ctx)
	g.hold(ctx, w.server)
	running.Go(func() { // a target that cannot be used ends its workloads, and no others
		select {
		case <-w.server.lost:
			w.fail(w.server.fault())
			w.stop()
		case <-w.over:
		}
	})
	running.Go(func() {
		if err := w.runner.Run(ctx, hard); err != nil {
			w.fail(err)
			o.Failed(err)
		} else if ctx.Err() == nil && !w.removed.Load() && w.shown != nil {
			o.Log.Info("over: nothing more is due", "workload", w.config.Name)
		}
		close(w.over)
		w.stop()
		<-w.leave
		w.server.release()
		if w.removed.Load() {
			o.Meter.Remove(w.count)
		}
		if w.shown != nil {
			o.Board.Remove(w.shown)
		}
		if err := w.file.Close(); err != nil {
			o.Log.Warn("trace", "workload", w.config.Name, "err", err)
		}
	})
}

func (w *workload) started() bool { return w.runner != nil }

func (w *workload) fail(err error) {
	text := err.Error()
	w.failure.CompareAndSwap(nil, &text)
}

// prepare makes the runner.
func (g *Generation) prepare(w *workload, from handover) {
	// Not g: a workload that runs on through a reload keeps no old generation in memory.
	c, t, o, shared := w.config, w.server.config, g.options, g.shared
	var after *replay.Runner
	if from.before != nil {
		after = from.before.runner
	}
	slo := measure.SLO{TTFT: time.Duration(c.SLO.TTFT), TPOT: time.Duration(c.SLO.TPOT), E2E: time.Duration(c.SLO.E2E)}
	w.count = o.Meter.Workload(measure.Labels{Workload: c.Name, Target: c.Target, Model: t.Model}, measure.WorkloadOptions{
		SLO: slo, Objective: c.SLO.Objective, Shard: measure.Shard{Index: int(c.Shard.Index), Of: c.Shard.Of},
		Trace: traceInfo(w.file.Stats), FreeOutput: t.Output != "exact",
	})
	observers := append([]replay.Observer{g.shared.sink}, o.Observers...)
	if o.Board != nil {
		observers = append(observers, card{w})
	}
	if o.Complain != nil {
		observers = append(observers, complainer{c.Name, o.Complain})
	}
	w.runner = replay.New(replay.Workload{
		Name: c.Name, Plan: w.plan, Prompt: w.prompter, Salt: synth.Salt(c.Prompt.Salt), Client: w.server.client, Target: w.server.watch,
		Count: w.count, Log: o.Log, Observers: observers, Dropped: func(why measure.DropReason) { o.dropped(c.Name, why) },
		Rejoined: func(text string) { o.note(slog.LevelWarn, text) }, Guarded: o.note,
		Guard: replay.Guard{
			Waiting: c.Guard.Waiting, KVCacheUsage: c.Guard.KVCacheUsage, ErrorRatio: c.Guard.ErrorRatio,
			Blind: replay.BlindMode(c.Guard.WhenBlind), ResumeAfter: time.Duration(c.Guard.ResumeAfter),
		},
		Budget: replay.Budget{
			RequestsPerMinute: int64(c.Budget.RequestsPerMinute), PromptTokensPerHour: int64(c.Budget.PromptTokensPerHour),
			OutputTokensPerDay: int64(c.Budget.OutputTokensPerDay),
		},
		Mark: replay.Mark{
			Mark: openai.Mark{Priority: (*int64)(c.Mark.Priority), User: c.Mark.User, Headers: c.Mark.Headers}, Salt: synth.Salt(c.Mark.CacheSalt),
		},
		Load: func() (replay.Load, error) { return shared.load(c.Target) }, After: after,
		Lanes: c.Lanes, Overload: replay.Overload(c.Overload), MaxWait: time.Duration(c.MaxWait), Ahead: int(c.Ahead.Bytes),
		MaxInput: c.Trace.MaxInput, MaxOutput: c.Trace.MaxOutput, OverLimit: replay.OverLimit(c.Trace.OverLimit),
		Calibrate: calibrates(c), Drain: time.Duration(o.Config.Drain), Epoch: c.Epoch, Rows: c.Rows,
		Begin: from.at, Paused: from.before != nil && from.before.runner.Paused(),
	})
	w.engine = func() string { return shared.words(c.Target) }
	w.show(o.Board, slo)
}

// dropped tells whoever wants to know of a request that was due and not sent.
func (o *Options) dropped(workload string, why measure.DropReason) {
	if o.Dropped != nil {
		o.Dropped(why)
	}
	if o.Complain != nil {
		o.Complain(workload, "dropped: "+string(why), "", "")
	}
}

// calibrates says whether a server may put tokens around a workload's prompts: a chat template, or the token that some
// models have at the beginning of any text. Token ids are taken as they are.
func calibrates(w config.Workload) bool { return w.Prompt.Calibrate && w.Prompt.Form == "text" }

func traceInfo(s trace.Stats) measure.TraceInfo {
	return measure.TraceInfo{
		Path: s.Path, Format: string(s.Format), SHA256: s.SHA256, Requests: s.Requests, BlockTokens: s.BlockTokens,
		PrefixHitRatio: s.Prefix.HitTokenRatio,
	}
}
