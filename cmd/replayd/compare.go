package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/version"
	"github.com/spf13/cobra"

	"replayd/internal/canary"
	"replayd/internal/cli"
	"replayd/internal/config"
	"replayd/internal/daemon"
	"replayd/internal/measure"
	"replayd/internal/secret"
	"replayd/internal/terminal"
)

const exitUndecided = 4 // compare: there is no verdict when the time is over

// compareFlags are the flags of compare.
type compareFlags struct {
	canary.Options
	workload  config.Workload
	baseline  config.Target
	candidate config.Target
	clients   [2]string // files of prometheus/common's HTTP client configuration
	model     string
	slo       string
	longest   config.Duration
	html      string
}

func newCompare(w *world) *cobra.Command {
	o := &compareFlags{
		Options: canary.Defaults(), workload: config.DefaultWorkload(), baseline: config.DefaultTarget(), candidate: config.DefaultTarget(),
		longest: config.Duration(30 * time.Minute),
	}
	c := &cobra.Command{
		Use: "compare TRACE --baseline URL --candidate URL", Short: "Say whether one server is worse than another",
		Long: `Say whether one server is worse than another: send each row of a trace to both
at the same instant, until there is a verdict or the time is over.

The trace is played again and again. A fail is wrong with a chance of at most
--alpha, and so is a pass, however long it takes.

Exit codes:
  0  pass
  1  failed to run
  2  wrong usage or input file
  3  fail: the candidate is worse
  4  undecided: there was no verdict in time
  130  cut short by SIGINT; 143 by SIGTERM`,
		Example: `  replayd compare trace.jsonl --baseline a:80 --candidate b:80 --tolerance 10%
  replayd compare trace.jsonl --baseline a:80 --candidate b:80 --html page.html`,
		Args: usage(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error { return o.run(c, w, args[0]) },
	}
	o.add(c)
	return c
}

func (o *compareFlags) add(c *cobra.Command) {
	var help cli.Headings
	f := help.Under("Servers")
	f.StringVar(&o.baseline.URL, "baseline", "", "address of the server to compare with (required)")
	f.StringVar(&o.candidate.URL, "candidate", "", "address of the server that is judged (required)")
	f.StringVarP(&o.model, "model", "m", "", "name of the model on both; empty: the only one that each lists")
	f.StringVar(&o.baseline.Model, "baseline-model", "", "name of the model on the baseline")
	f.StringVar(&o.candidate.Model, "candidate-model", "", "name of the model on the candidate")
	f.StringVar(&o.clients[0], "baseline-http.config.file", "", "Prometheus' HTTP client configuration: keys, passwords, TLS")
	f.StringVar(&o.clients[1], "candidate-http.config.file", "", "the same for the candidate")
	f.StringVar(&o.baseline.API, "api", o.baseline.API, "chat or completions")
	f.BoolVar(&o.baseline.Stream, "stream", true, "stream the answers; false: only e2e is compared")

	f = help.Under("Load")
	f.StringVar(&o.workload.Arrival, "arrival", o.workload.Arrival, "due times: exact (the trace's) or spread (over the tick)")
	f.Float64Var(&o.workload.Speed, "speed", o.workload.Speed, "trace seconds per second, 0.001 to 1000")
	f.Float64Var(&o.workload.TurnDelay.Scale, "turn-delay-scale", 1, "factor for the trace's delays between turns and waits after parents, 0 to 1000; 0: none")
	f.Var(cli.Duration(&o.workload.TurnDelay.Max), "turn-delay-max", "longest such delay or wait, after the factor, such as 60s; 0: no limit")
	f.IntVar(&o.workload.Lanes, "lanes", o.workload.Lanes, "most requests in flight on each side")
	f.IntVar(&o.workload.Trace.MaxInput, "max-input", 0, "longest prompt in tokens; 0: no limit")
	f.IntVar(&o.workload.Trace.MaxOutput, "max-output", 0, "longest output in tokens; 0: no limit")
	f.StringVar(&o.workload.Trace.OverLimit, "over-limit", o.workload.Trace.OverLimit, "longer rows: filter, clip or send")
	f.StringVar(&o.slo, "slo", "", "bounds, such as ttft:2s,tpot:100ms: an answer beyond them is bad")

	f = help.Under("Verdict")
	f.Var(cli.Duration(&o.longest), "for", "longest time until a verdict, such as 2h")
	f.Var(cli.Share(&o.Tolerance), "tolerance", "how much longer a latency may be, such as 0.05 or 5%")
	f.Var(cli.Share(&o.Alpha), "alpha", "greatest chance that a fail is wrong, and that a pass is")
	f.IntVar(&o.MinPairs, "min-pairs", o.MinPairs, "least pairs of a block that met no queue")
	f.DurationVar(&o.MinTime, "min-time", o.MinTime, "least length of a block")
	f.Var(cli.Share(&o.ToleranceTail), "tolerance-tail", "least excess of much slower requests that is a fail")
	f.Var(cli.Share(&o.ToleranceQueued), "tolerance-queued", "least excess of queued requests that is a fail")
	f.Var(cli.Share(&o.ToleranceBad), "tolerance-bad", "least excess of bad requests that is a fail")
	f = help.Under("Output")
	f.StringVar(&o.html, "html", "", "write a page with charts to this file at the end")
	help.Attach(c)
}

// config returns the configuration of the comparison.
func (o *compareFlags) config(trace string) (config.Config, error) {
	c := config.Default()
	var errs []error
	for i, t := range []*config.Target{&o.baseline, &o.candidate} {
		t.Name = canary.Side(i).String()
		if t.URL == "" {
			errs = append(errs, fmt.Errorf("--%s: want the address of a server, got none", t.Name))
		} else {
			t.URL = cli.WithScheme(t.URL)
		}
		if o.model != "" && t.Model == "" {
			t.Model = o.model
		}
		t.API, t.Stream = o.baseline.API, o.baseline.Stream
		if o.clients[i] != "" {
			http, err := cli.HTTPConfig(o.clients[i])
			if err != nil {
				errs = append(errs, fmt.Errorf("--%s-http.config.file: %w", t.Name, err))
			}
			t.HTTP = config.HTTP{HTTPClientConfig: http}
		}
	}
	w := &o.workload
	w.Name, w.Target, w.Trace.Path, w.Repeat.Align = "compare", o.baseline.Name, trace, "start"
	if o.slo != "" {
		slo, err := measure.ParseSLO(o.slo)
		if err != nil {
			errs = append(errs, fmt.Errorf("--slo: %w", err))
		}
		w.SLO.Bounds = config.BoundsOf(slo)
	}
	if w.Arrival != "exact" && w.Arrival != "spread" {
		errs = append(errs, fmt.Errorf("--arrival: want exact or spread, got %q", w.Arrival))
	}
	if o.longest <= 0 {
		errs = append(errs, fmt.Errorf("--for: want a time above 0, got %v", o.longest))
	}
	errs = append(errs, inFlags(o.Check(), verdictFlagOf))
	comparison := config.ComparisonOf(o.Options)
	comparison.Name, comparison.Workload, comparison.Candidate = "compare", w.Name, o.candidate.Name
	c.Targets, c.Workloads, c.Comparisons = []config.Target{o.baseline, o.candidate}, []config.Workload{*w}, []config.Comparison{comparison}
	return c, errors.Join(errs...)
}

// verdictFlagOf maps options of a comparison to flags, for errors.
var verdictFlagOf = map[string]string{
	"min_pairs": "min-pairs", "min_time": "min-time",
	"tolerance_tail": "tolerance-tail", "tolerance_queued": "tolerance-queued", "tolerance_bad": "tolerance-bad",
}

// compareFaults names the flag of each fault that was found when files and targets were opened. A fault in the trace names its place by itself.
func compareFaults(found config.Faults) error {
	flags := map[string]string{
		"targets[0]": "--baseline: ", "targets[0].url": "--baseline: ", "targets[1]": "--candidate: ", "targets[1].url": "--candidate: ",
		"targets[0].api": "--api: ", "workloads[0].trace.path": "",
	}
	var errs []error
	for _, f := range found {
		name, known := flags[f.Path]
		if !known {
			name = "--" + strings.ReplaceAll(f.Path[strings.LastIndexByte(f.Path, '.')+1:], "_", "-") + ": "
		}
		if f.Path != "targets[1].api" { // --api is for both
			errs = append(errs, errors.New(name+secret.InAddresses(f.Want)))
		}
	}
	return errors.Join(errs...)
}

// errDecided ends a comparison that has its verdict.
var errDecided = errors.New("there is a verdict")

// workloadFailed ends a comparison of which a side cannot go on.
type workloadFailed struct{ error }

func (o *compareFlags) run(c *cobra.Command, w *world, trace string) error {
	cfg, err := o.config(trace)
	if err != nil {
		return wrongInput(err)
	}
	page := comparePage{path: o.html, begin: time.Now()}
	if err := page.check(); err != nil {
		return wrongInput(err)
	}
	ctx, stop := context.WithCancelCause(c.Context())
	defer stop(nil)
	reg := prometheus.NewRegistry()
	var last canary.Judgement // when Run has returned, nothing writes to it
	open := func() bool { return last.Verdict != canary.Pass && last.Verdict != canary.Fail }
	shown := terminal.NewComparing(w.screen(), w.log, o.Options, time.Duration(o.longest))
	options := daemon.Options{
		Config: cfg, UserAgent: "replayd/" + version.Version, Log: w.log, Failed: func(err error) { stop(&workloadFailed{err}) },
		Judged: func(_ string, j canary.Judgement) {
			if !open() {
				return // the first verdict stands; requests may still be in flight
			}
			last = j
			page.look(&j, reg)
			if !open() {
				stop(errDecided)
				return
			}
			shown.Judged(&j)
		},
	}
	if o.html != "" {
		options.Block = func(_ string, b canary.Block) {
			if open() {
				page.history.Block(b)
			}
		}
		options.Pair = func(_ string, p *canary.Pair) {
			if open() {
				page.history.Pair(p)
			}
		}
	}
	once := daemon.Once{
		Options: options, Version: version.Version, LogDropped: w.dropped,
		Started: func(int, func() daemon.Progress) {
			time.AfterFunc(time.Duration(o.longest), func() { stop(context.DeadlineExceeded) })
		},
		Ended: func(measure.Ledger, error) {},
	}
	err = once.Run(ctx, hardStop(c.Context()), reg)
	shown.End()
	if bad := (*config.Invalid)(nil); errors.As(err, &bad) {
		return wrongInput(compareFaults(bad.Faults))
	}
	if failed := (*workloadFailed)(nil); errors.As(context.Cause(ctx), &failed) {
		err = errors.Join(failed.error, err)
	}
	if err != nil {
		return err
	}
	fmt.Fprint(w.out, terminal.Comparison(&last, o.Options, w.columns))
	if err := page.write(&last, o, &cfg); err != nil {
		return err
	}
	switch s := stopped(c.Context()); {
	case last.Verdict == canary.Fail:
		return &exitError{exitMissed, errors.New("the candidate is worse than the baseline")}
	case last.Verdict == canary.Pass:
		return nil
	case s != nil:
		return &exitError{s.code(), fmt.Errorf("%w before there was a verdict", s)}
	}
	return &exitError{exitUndecided, fmt.Errorf("no verdict in %v", o.longest)}
}
