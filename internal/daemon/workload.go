package daemon

import (
	"context"
	"strings"
	"time"

	"replayd/internal/config"
	"replayd/internal/measure"
	"replayd/internal/replay"
	"replayd/internal/schedule"
	"replayd/internal/synth"
	"replayd/internal/token"
	"replayd/internal/trace"
)

// A workload is a trace that was found to be good, its plan and its prompts, and then the runner over them.
type workload struct {
	config   config.Workload
	trace    *trace.File
	plan     *schedule.Plan
	prompter *synth.Prompter
	runner   *replay.Runner
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

// openWorkload does all of a workload that can be at fault.
func (g *Generation) openWorkload(ctx context.Context, w config.Workload) error {
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
	g.workloads = append(g.workloads, &workload{config: w, trace: file, plan: plan, prompter: prompter})
	return nil
}

// addRunner puts a workload's series on the page and makes its runner.
func (g *Generation) addRunner(l *workload) {
	w, target := l.config, g.targets[l.config.Target]
	observers := g.options.Observers
	if g.sink != nil {
		observers = append(observers[:len(observers):len(observers)], g.sink)
	}
	l.runner = replay.New(replay.Workload{
		Name: w.Name, Plan: l.plan, Prompt: l.prompter, Salt: synth.Salt(w.Prompt.Salt), Client: target.client, Target: target.watch,
		Count: g.options.Meter.Workload(g.labels(w), measure.WorkloadOptions{
			SLO:        measure.SLO{TTFT: time.Duration(w.SLO.TTFT), TPOT: time.Duration(w.SLO.TPOT), E2E: time.Duration(w.SLO.E2E)},
			Trace:      traceInfo(l.trace.Stats),
			FreeOutput: g.target(w.Target).Output != "exact",
		}),
		Log: g.options.Log, Observers: observers, Dropped: g.options.Dropped,
		Lanes: w.Lanes, Overload: replay.Overload(w.Overload), MaxWait: time.Duration(w.MaxWait), Ahead: int(w.Ahead.Bytes),
		MaxInput: w.Trace.MaxInput, MaxOutput: w.Trace.MaxOutput, OverLimit: replay.OverLimit(w.Trace.OverLimit),
		Calibrate: calibrates(w),
		Drain:     time.Duration(g.options.Config.Drain), Epoch: w.Epoch, Rows: w.Rows,
	})
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
