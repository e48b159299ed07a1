package daemon

import (
	"context"

	"replayd/internal/limits"
	"replayd/internal/measure"
	"replayd/internal/metrics"
	"replayd/internal/openai"
	"replayd/internal/replay"
	"replayd/internal/schedule"
)

// start registers a workload's series and starts it.
func (g *Generation) start(ctx, hard context.Context, w *workload, from handover) {
	g.prepare(w, from)
	o, running, sink := g.options, &g.shared.running, g.shared.sink
	if before := from.before; before != nil {
		w.before.Store(before)
		running.Go(func() {
			// one that was replaced before its first row may end before its own predecessor
			for b := before; b != nil; b = b.before.Load() {
				<-b.over
			}
			w.before.Store(nil)
		})
	}
	watchdog := g.shared.watchdog
	watchdog.watch(w, &watched{
		kind: "workload", name: w.config.Name, turn: func() uint64 { return w.current().Turn() },
		show: w.count.Stuck, ledger: w.count.Ledger,
	})
	ctx, w.stop = context.WithCancel(ctx)
	w.server.use(ctx, running, o.Failed)
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
		} else if ctx.Err() == nil && !w.removed.Load() && w.shown.Load() != nil && !from.Over {
			o.Log.Info("plan finished: nothing more is due", "workload", w.config.Name)
		}
		watchdog.forget(w)
		w.count.Stuck(false)
		close(w.over)
		w.stop()
		<-w.leave
		w.server.release()
		if w.removed.Load() {
			sink.WriteLedgers() // writes the last ledger
			o.Meter.Remove(w.count)
		}
		if shown := w.shown.Load(); shown != nil {
			o.Board.Remove(shown)
		}
		w.readers.Wait()
		if err := w.rows.Close(); err != nil {
			o.Log.Warn("trace cannot be closed", "workload", w.config.Name, "err", err)
		}
	})
}

func (g *Generation) prepare(w *workload, from handover) {
	// Copies, not g: a workload that continues over a reload must not keep the old generation in memory.
	c, t, o, shared := w.config, w.server.config, g.options, g.shared
	labels := metrics.Labels{Workload: c.Name, Target: c.Target, Model: t.Model}
	w.count = o.Meter.Workload(labels, metrics.WorkloadOptions{
		SLO: c.SLO.Bounds.Levels(), Objective: c.SLO.Objective, Sessions: c.SLO.Session,
		Shard: metrics.Shard{Index: int(c.Shard.Index), Of: c.Shard.Of}, Trace: traceInfo(w.rows.stats),
		FreeOutput: t.Output != openai.OutputExact, Sheds: c.Overload == replay.Drop,
		Replicas: t.Replica != "", Echo: c.Request.EchoHeader != "", Cron: c.Repeat.Mode == schedule.Cron, Target: w.server.shown, Learn: t.Model == "",
	})
	parts := replay.Workload{
		Traffic: w.traffic(), Hooks: w.hooks(&o, shared.sink), Environment: w.environment(&o, shared),
	}
	w.make = func(from replay.Handover) *replay.Runner {
		of := parts
		of.Plan, of.Prompt, of.Handover = w.plan, w.prompter, from
		if from.Part < 0 {
			of.Part = shared.begun.next(c.Name)
		}
		if w.side.of != nil {
			w.side.join(&of, c.SLO.Bounds.Levels(), w.rows.digest())
		}
		return replay.New(of)
	}
	w.reopen = func(ctx context.Context) (*rowSource, error) {
		rows, faults := o.openRows(ctx, "", c, w.server.tokenizer)
		return rows, wants(faults)
	}
	h := from.Handover
	h.Epoch = c.Epoch
	if from.before == nil {
		h.Paused = h.Paused || g.paused
	} else {
		h.After = from.before.current()
		h.Paused = h.Paused || h.After.Paused()
	}
	w.runner = w.make(h)
	w.engine = func() string { return shared.unread(c.Target) }
	w.show(o.Board)
}

// traffic returns the workload's traffic without its plan and its prompts.
func (w *workload) traffic() replay.Traffic {
	c := w.config
	t := replay.Traffic{
		Name: c.Name, Sending: c.Sending, LengthLimits: c.Trace.LengthLimits, Guard: c.Guard, Budget: c.Budget,
		Salt: c.Prompt.Salt, Request: c.Request, Calibrate: calibrates(c), History: c.Prompt.History, Output: c.Prompt.Output,
		Whole: !w.server.config.Stream, Hold: c.KeepLane, WarmupLanes: c.WarmupLanes,
	}
	t.Request.Seed, t.Cancel.Seed = c.Prompt.Seed, c.Prompt.Seed
	if c.Timed() { // a plan that repeats its rows counts them itself
		t.Rows = c.Rows
	}
	if c.Closed() {
		t.Duration = c.Duration
	} else {
		t.LoopTime = c.Duration
	}
	return t
}

func (w *workload) hooks(o *Options, sink replay.Observer) replay.Hooks {
	h := replay.Hooks{
		Observers: append([]replay.Observer{sink}, o.Observers...),
		Warmed:    append([]replay.Observer{sink}, o.Warmed...),
		Dropped:   func(why measure.DropReason, n int) { o.dropped(w.config.Name, why, n) },
		Noted:     o.note, NoRows: w.setFailure,
		Saved: o.Saved, Reuse: o.Reuse, Session: o.Session, Clipped: o.Clipped,
	}
	if o.Board != nil {
		h.Observers = append(h.Observers, card{w})
	}
	if o.LogFailure != nil {
		h.Observers = append(h.Observers, failureObserver{w.config.Name, o.LogFailure})
	}
	if o.Patient {
		h.Lost = func(l replay.Lost) { w.lost <- l } // a runner sends once; play has received from the previous runner
	}
	return h
}

// environment returns the parts of the process that the workload uses.
func (w *workload) environment(o *Options, shared *shared) replay.Environment {
	target := w.config.Target
	e := replay.Environment{
		Client: w.server.client, Target: w.server.watch, Count: w.count, Log: o.Log, Drain: o.Config.Drain,
		Wall:  o.Wall,
		Load:  func() (limits.Load, error) { return shared.load(target) },
		Pacer: shared.pacer, Waiting: &shared.waiting, HoldReader: !o.Patient, BeforeFirst: o.BeforeFirst,
	}
	if t := w.server.tokenizer; t != nil {
		e.CountInput, e.CountOutput = t.Count, t.Count
	}
	return e
}
