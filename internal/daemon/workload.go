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

// A workload has checked rows, their plan and prompts, and, after its start, the runner.
type workload struct {
	config config.Workload
	server *server
	place  place // of a side of a comparison

	mu       sync.Mutex // guards what play changes
	rows     *rowSource
	plan     *schedule.Plan
	prompter *synth.Prompter
	runner   *replay.Runner
	earlier  *replay.Runner // the runner of the rows before they were reread; may still drain
	retired  bool           // a successor takes over from an instant on

	// Set at the start.
	make    func(after *replay.Runner, begin, epoch time.Time, paused bool) *replay.Runner
	reopen  func(context.Context) (*rowSource, error)
	lost    chan replay.Lost         // capacity 1
	quit    chan struct{}            // closed with retired
	before  atomic.Pointer[workload] // the predecessor, until it has ended
	count   *metrics.Workload
	shown   atomic.Pointer[live.Workload] // nil: there is no live page
	engine  func() string                 // describes the load of the target's engines; "" if they are not scraped
	stop    context.CancelFunc
	over    chan struct{} // closed when the runner has ended
	leave   chan struct{} // closed when the workload is removed
	removed atomic.Bool   // the series are removed at the end
	failure atomic.Pointer[string]
	broken  atomic.Bool // the rows cannot be read, or the workload has failed: a reload opens it again
}

// openWorkload opens everything of a workload that can have a fault, or takes the workload over from the generation before. It
// returns nil with faults, and if a known fault, or a fault of its target, prevents a run. around has the keys with known faults.
func (g *Generation) openWorkload(ctx context.Context, at string, c config.Workload, old *Generation, around map[string]bool) (*workload, config.Faults) {
	server, before := g.servers[c.Target], old.workload(c.Name)
	place := g.places[c.Name]
	if before != nil && place.of != nil && before.place == place {
		return before, nil // playsOn has looked at it, and at the other side
	}
	same := before != nil && reflect.DeepEqual(before.config, c) && before.server == server && !before.broken.Load() && before.place == place
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
	if same && before.plays(opened) { // the file was replaced by an equal one
		return before, faultsAt(at+".trace.path", opened.Close())
	}
	w := &workload{
		config: c, server: server, rows: opened, place: place,
		over: make(chan struct{}), leave: make(chan struct{}), lost: make(chan replay.Lost, 1), quit: make(chan struct{}),
	}
	if !around[at] {
		faults = w.open(at)
	}
	if len(faults) > 0 || around[at] || server == nil {
		_ = opened.Close() // the faults are returned
		return nil, faults
	}
	return w, nil
}

// unchanged reports whether a path still has the same file.
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

// workload returns the workload with a name; nil: there is none.
func (g *Generation) workload(name string) *workload {
	if g == nil {
		return nil
	}
	return g.named[name]
}

// A handover says from which workload, and when, a workload takes over.
type handover struct {
	before *workload // the predecessor; nil: there is none
	at     time.Time // planned instant of the first row of its own; zero: now
	paused bool      // begin paused, whatever the predecessor
}

// start registers a workload's series and starts it.
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
	running.Go(func() { // a target that cannot be used ends only its own workloads
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
			sink.Tell() // writes the last ledger
			o.Meter.Remove(w.count)
		}
		if shown := w.shown.Load(); shown != nil {
			o.Board.Remove(shown)
		}
		if err := w.rows.Close(); err != nil {
			o.Log.Warn("trace cannot be closed", "workload", w.config.Name, "err", err)
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

// prepare prepares the runner.
func (g *Generation) prepare(w *workload, from handover) {
	// Copies, not g: a workload that continues over a reload must not keep the old generation in memory.
	c, t, o, shared := w.config, w.server.config, g.options, g.shared
	w.count = o.Meter.Workload(metrics.Labels{Workload: c.Name, Target: c.Target, Model: t.Model}, metrics.WorkloadOptions{
		SLO: c.SLO.Bounds.Levels(), Objective: c.SLO.Objective, Sessions: sessionLevels(c.SLO.Session), Shard: metrics.Shard{Index: int(c.Shard.Index), Of: c.Shard.Of},
		Trace: traceInfo(w.rows.stats), FreeOutput: t.Output != "exact", Sheds: c.Overload == "drop",
		Replicas: t.Replica != "", Echo: c.Request.EchoHeader != "", Target: w.server.shown, Learn: t.Model == "",
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
			RequestFields: openai.RequestFields{
				Priority: (*int64)(c.Request.Priority), User: c.Request.User, Headers: c.Request.Headers, SessionField: c.Request.SessionField,
			},
			Salt: synth.Salt(c.Request.CacheSalt), Seed: c.Prompt.Seed,
		},
		Load:  func() (limits.Load, error) { return shared.load(c.Target) },
		Whole: !t.Stream, History: c.Prompt.History, Hold: c.KeepLane, Saved: o.Saved, Reuse: o.Reuse, Session: o.Session,
		Cancel:     replay.Cancel{Ratio: c.Cancel.Ratio, After: time.Duration(c.Cancel.After), Seed: c.Prompt.Seed},
		CountInput: w.server.tokens.counter(), CountOutput: w.server.tokens.counter(),
		Warmup: c.Warmup.Requests, WarmupLanes: c.WarmupLanes, Warmed: append([]replay.Observer{g.shared.sink}, o.Warmed...),
		Lanes: c.Lanes, Overload: replay.Overload(c.Overload), MaxWait: time.Duration(c.MaxWait), Ahead: int(c.Prebuild.Bytes),
		MaxInput: c.Trace.MaxInput, MaxOutput: c.Trace.MaxOutput, MaxContext: c.Trace.MaxContext, OverLimit: replay.OverLimit(c.Trace.OverLimit),
		Calibrate: calibrates(c), Drain: time.Duration(o.Config.Drain), Rows: rowsOf(c), Duration: closedFor(c), Clipped: o.Clipped, Wall: o.Wall,
		Pacer: shared.pacer, Waiting: &shared.waiting, HoldReader: !o.Patient,
	}
	if name := c.Request.EchoHeader; name != "" {
		options.Echo = openai.NewEcho(name)
	}
	if w.place.of != nil {
		w.place.of.join(&options, c.SLO.Bounds.Levels(), w.place.side)
	}
	if o.Patient {
		options.Lost = func(l replay.Lost) { w.lost <- l } // a runner sends once; play has received from the previous runner
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
	w.runner = w.make(after, from.at, c.Epoch, from.paused || g.pauses(from.before))
	w.engine = func() string { return shared.unread(c.Target) }
	w.show(o.Board)
}

// dropped logs n requests that were due and not sent. Filtered ones are configured, and not logged.
func (o *Options) dropped(workload string, why measure.DropReason, n int) {
	if o.LogFailure != nil && why != measure.Filtered {
		o.LogFailure(workload, "dropped: "+string(why), n, "", "")
	}
}

// calibrates reports whether a server may add tokens to a workload's prompts: those of a chat template, or the token that some
// models put at the begin of a text. Servers add nothing to token ids.
func calibrates(w config.Workload) bool { return w.Prompt.Calibrate && w.Prompt.Form == "text" }

// rowsOf returns the number of rows that the runner counts: a plan that repeats its rows counts them itself.
func rowsOf(c config.Workload) int {
	if config.Timed(c.Arrival) {
		return c.Rows
	}
	return 0
}

// closedFor returns the time after which a closed loop ends. A plan with instants ends by itself.
func closedFor(c config.Workload) time.Duration {
	if config.Closed(c.Arrival) {
		return time.Duration(c.Duration)
	}
	return 0
}

func sessionLevels(s config.SessionSLO) metrics.SessionSLO {
	return metrics.SessionSLO{SessionSLO: measure.SessionSLO{Makespan: time.Duration(s.Makespan)}, Objective: s.Objective}
}

func traceInfo(s trace.Stats) metrics.TraceInfo {
	return metrics.TraceInfo{
		Path: s.Path, Format: string(s.Format), SHA256: s.SHA256, Requests: s.Requests, Sessions: s.Sessions, BlockTokens: s.BlockTokens,
		PrefixHitRatio: s.Prefix.HitTokenRatio,
	}
}
