package daemon

import (
	"context"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"replayd/internal/config"
	"replayd/internal/limits"
	"replayd/internal/live"
	"replayd/internal/measure"
	"replayd/internal/metrics"
	"replayd/internal/openai"
	"replayd/internal/replay"
	"replayd/internal/schedule"
	"replayd/internal/synth"
	"replayd/internal/token"
	"replayd/internal/trace"
)

// A workload is rows that were found to be good, their plan and their prompts, and then the runner over them.
type workload struct {
	config config.Workload
	server *server

	mu       sync.Mutex // from the start on, over what play changes
	rows     *rowSource
	plan     *schedule.Plan
	prompter *synth.Prompter
	runner   *replay.Runner
	earlier  *replay.Runner // of the same workload, with the rows as they were; it may drain still
	retired  bool           // a successor plays from an instant on

	// From its start on.
	make    func(after *replay.Runner, begin, epoch time.Time, paused bool) *replay.Runner
	reopen  func(context.Context) (*rowSource, error)
	lost    chan replay.Lost         // holds one
	quit    chan struct{}            // closed with retired
	before  atomic.Pointer[workload] // the one that it took over from, until that has ended
	count   *metrics.Workload
	shown   atomic.Pointer[live.Workload] // nil without a page
	engine  func() string                 // how busy the target's engines are, in words; empty when they are not scraped
	stop    context.CancelFunc
	over    chan struct{} // closed when the runner has ended
	leave   chan struct{} // closed when the workload is removed
	removed atomic.Bool   // its series go with it
	failure atomic.Pointer[string]
	broken  atomic.Bool // its rows cannot be read, or it has failed: a reload opens it anew
}

// openWorkload does all of a workload that can be at fault, or takes it over from the generation before. It is nil with faults,
// and where a known fault, or one of its target, leaves nothing to be run. Around are the keys with known faults.
func (g *Generation) openWorkload(ctx context.Context, at string, c config.Workload, old *Generation, around map[string]bool) (*workload, config.Faults) {
	server, before := g.servers[c.Target], old.workload(c.Name)
	same := before != nil && reflect.DeepEqual(before.config, c) && before.server == server && !before.broken.Load()
	if same && slices.EqualFunc(before.files(), filesOf(c), unchanged) {
		return before, nil
	}
	if around[at+".trace"] || around[at+".synthetic"] || around[at+".dataset"] || server == nil && c.Dataset.Given() {
		return nil, nil
	}
	var counter *token.Tokenizer
	if server != nil {
		counter = server.tokens.tokenizer()
	}
	opened, faults := g.openRows(ctx, at, c, counter)
	if len(faults) > 0 {
		return nil, faults
	}
	if same && before.plays(opened) { // only put in place anew
		return before, faultsAt(at+".trace.path", opened.Close())
	}
	w := &workload{
		config: c, server: server, rows: opened,
		over: make(chan struct{}), leave: make(chan struct{}), lost: make(chan replay.Lost, 1), quit: make(chan struct{}),
	}
	if !around[at] {
		faults = w.open(at)
	}
	if len(faults) > 0 || around[at] || server == nil {
		_ = opened.Close() // the faults are what matters
		return nil, faults
	}
	return w, nil
}

// unchanged says whether a path still holds the file that it held.
func unchanged(before, now os.FileInfo) bool {
	return before != nil && now != nil && os.SameFile(before, now) && before.Size() == now.Size() && before.ModTime().Equal(now.ModTime())
}

// open makes the plan and the prompts.
func (w *workload) open(at string) config.Faults {
	c := w.config
	var err error
	if w.plan, err = schedule.New(w.rows.source, c.Plan()); err != nil {
		return faultsOf(at, err, config.PlanKeys)
	}
	words, err := token.List(c.Prompt.Words)
	if err != nil {
		return faultsAt(at+".prompt.words", err)
	}
	w.prompter, err = synth.New(synth.Options{
		Words: words, Form: synth.Form(c.Prompt.Form), Seed: c.Prompt.Seed, BlockTokens: w.rows.stats.BlockTokens, Texts: w.rows.texts,
	})
	return faultsAt(at+".prompt", err)
}

// workload is the one of a name; nil when there is none.
func (g *Generation) workload(name string) *workload {
	if g == nil {
		return nil
	}
	return g.named[name]
}

// A handover is what a workload takes over from the one that it replaces.
type handover struct {
	before *workload // nil: there was none
	at     time.Time // rows from this planned instant on are its own; zero: from now on
}

// start puts a workload's series on the page and lets it run.
func (g *Generation) start(ctx, hard context.Context, w *workload, from handover) {
	g.prepare(w, from)
	o, running, sink := g.options, &g.shared.running, g.shared.sink
	if before := from.before; before != nil {
		w.before.Store(before)
		running.Go(func() {
			<-before.over
			w.before.Store(nil)
		})
	}
	ctx, w.stop = context.WithCancel(ctx)
	g.keepServer(ctx, w.server)
	running.Go(func() { // a target that cannot be used ends its workloads, and no others
		select {
		case <-w.server.lost:
			w.fail(w.server.fault())
			w.stop()
		case <-w.over:
		}
	})
	running.Go(func() {
		if err := w.play(ctx, hard, &o); err != nil {
			w.fail(err)
			o.Failed(err)
		} else if ctx.Err() == nil && !w.removed.Load() && w.shown.Load() != nil {
			o.Log.Info("plan finished: nothing more is due", "workload", w.config.Name)
		}
		close(w.over)
		w.stop()
		<-w.leave
		w.server.release()
		if w.removed.Load() {
			sink.Tell() // its last ledger
			o.Meter.Remove(w.count)
		}
		if shown := w.shown.Load(); shown != nil {
			o.Board.Remove(shown)
		}
		if err := w.rows.Close(); err != nil {
			o.Log.Warn("trace", "workload", w.config.Name, "err", err)
		}
	})
}

func (w *workload) started() bool { return w.runner != nil }

func (w *workload) fail(err error) {
	text := err.Error()
	w.failure.CompareAndSwap(nil, &text)
	w.broken.Store(true)
	w.count.Fault(true)
}

// prepare makes the runner.
func (g *Generation) prepare(w *workload, from handover) {
	// Not g: a workload that runs on through a reload keeps no old generation in memory.
	c, t, o, shared := w.config, w.server.config, g.options, g.shared
	w.count = o.Meter.Workload(metrics.Labels{Workload: c.Name, Target: c.Target, Model: t.Model}, metrics.WorkloadOptions{
		SLO: c.SLO.Bounds.Levels(), Objective: c.SLO.Objective, Shard: metrics.Shard{Index: int(c.Shard.Index), Of: c.Shard.Of},
		Trace: traceInfo(w.rows.stats), FreeOutput: t.Output != "exact", Sheds: c.Overload == "drop", Target: w.server.shown, Learn: t.Model == "",
	})
	observers := append([]replay.Observer{g.shared.sink}, o.Observers...)
	if o.Board != nil {
		observers = append(observers, card{w})
	}
	if o.LogFailure != nil {
		observers = append(observers, failureObserver{c.Name, o.LogFailure})
	}
	options := replay.Workload{
		Name: c.Name, Salt: synth.Salt(c.Prompt.Salt), Client: w.server.client, Target: w.server.watch,
		Count: w.count, Log: o.Log, Observers: observers, Dropped: func(why measure.DropReason, n int) { o.dropped(c.Name, why, n) },
		Rejoined: func(text string) { o.note(slog.LevelWarn, text) }, Guarded: o.note, Held: w.held,
		Guard: limits.Guard{
			Waiting: c.Guard.Waiting, KVCacheUsage: c.Guard.KVCacheUsage, ErrorRatio: c.Guard.ErrorRatio,
			Blind: limits.BlindMode(c.Guard.OnMissingMetrics), ResumeAfter: time.Duration(c.Guard.ResumeAfter),
		},
		Budget: limits.Budget{
			RequestsPerMinute: int64(c.Budget.RequestsPerMinute), PromptTokensPerHour: int64(c.Budget.PromptTokensPerHour),
			OutputTokensPerDay: int64(c.Budget.OutputTokensPerDay),
		},
		Request: replay.RequestFields{
			RequestFields: openai.RequestFields{Priority: (*int64)(c.Request.Priority), User: c.Request.User, Headers: c.Request.Headers}, Salt: synth.Salt(c.Request.CacheSalt),
		},
		Load:  func() (limits.Load, error) { return shared.load(c.Target) },
		Whole: !t.Stream, History: c.Prompt.History, Hold: c.KeepLane, Saved: o.Saved, Reuse: o.Reuse,
		Cancel:     replay.Cancel{Ratio: c.Cancel.Ratio, After: time.Duration(c.Cancel.After), Seed: c.Prompt.Seed},
		CountInput: w.server.tokens.counter(), CountOutput: w.server.tokens.counter(),
		Warmup: c.Warmup.Requests, WarmupLanes: 1, Warmed: append([]replay.Observer{g.shared.sink}, o.Warmed...),
		Lanes: c.Lanes, Overload: replay.Overload(c.Overload), MaxWait: time.Duration(c.MaxWait), Ahead: int(c.Prebuild.Bytes),
		MaxInput: c.Trace.MaxInput, MaxOutput: c.Trace.MaxOutput, MaxContext: c.Trace.MaxContext, OverLimit: replay.OverLimit(c.Trace.OverLimit),
		Calibrate: calibrates(c), Drain: time.Duration(o.Config.Drain), Rows: rowsOf(c), Duration: closedFor(c), Clipped: o.Clipped, Wall: o.Wall,
		Pacer: shared.pacer, Waiting: &shared.waiting, HoldReader: !o.Patient,
	}
	if o.Patient {
		options.Lost = func(l replay.Lost) { w.lost <- l } // a runner says so once, and play has taken that of the one before
	}
	w.make = func(after *replay.Runner, begin, epoch time.Time, paused bool) *replay.Runner {
		of := options
		of.Plan, of.Prompt, of.After, of.Begin, of.Epoch, of.Paused = w.plan, w.prompter, after, begin, epoch, paused
		return replay.New(of)
	}
	w.reopen = func(ctx context.Context) (*rowSource, error) {
		rows, faults := (&Generation{options: o}).openRows(ctx, "", c, w.server.tokens.tokenizer())
		return rows, wants(faults)
	}
	var after *replay.Runner
	if from.before != nil {
		after = from.before.current()
	}
	w.runner = w.make(after, from.at, c.Epoch, g.pauses(from.before))
	w.engine = func() string { return shared.words(c.Target) }
	w.show(o.Board)
}

// dropped complains of n requests that were due and not sent. Filtered ones are as they were configured.
func (o *Options) dropped(workload string, why measure.DropReason, n int) {
	if o.LogFailure != nil && why != measure.Filtered {
		o.LogFailure(workload, "dropped: "+string(why), n, "", "")
	}
}

// calibrates says whether a server may put tokens around a workload's prompts: a chat template, or the token that some
// models have at the beginning of any text. Token ids are taken as they are.
func calibrates(w config.Workload) bool { return w.Prompt.Calibrate && w.Prompt.Form == "text" }

// rowsOf is how many rows the runner counts: a plan whose rows come round counts them itself.
func rowsOf(c config.Workload) int {
	if config.Timed(c.Arrival) {
		return c.Rows
	}
	return 0
}

// closedFor is after what time a closed loop ends; a plan that has instants ends itself.
func closedFor(c config.Workload) time.Duration {
	if c.Arrival == string(schedule.Concurrency) {
		return time.Duration(c.Duration)
	}
	return 0
}

func traceInfo(s trace.Stats) metrics.TraceInfo {
	return metrics.TraceInfo{
		Path: s.Path, Format: string(s.Format), SHA256: s.SHA256, Requests: s.Requests, BlockTokens: s.BlockTokens,
		PrefixHitRatio: s.Prefix.HitTokenRatio,
	}
}
