package main

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/common/version"
	"github.com/spf13/cobra"

	"replayd/internal/config"
	"replayd/internal/daemon"
	"replayd/internal/measure"
	"replayd/internal/replay"
	"replayd/internal/report"
)

// runFlags are run's own; the fields of config that flags write to directly are in it.
type runFlags struct {
	target   config.Target
	workload config.Workload
	records  string
	listen   string
	shard    string
	start    string
	duration config.Duration
	requests int
	slo      string
	goodput  string
	least    float64
}

func newRun(w *world) *cobra.Command {
	o := runFlags{target: config.DefaultTarget(), workload: config.DefaultWorkload()}
	c := &cobra.Command{
		Use: "run TRACE --url URL", Short: "Replay a trace once, then print a report",
		Example: `  replayd run conversation_trace.jsonl --url http://127.0.0.1:8000
  replayd run trace.jsonl --url http://127.0.0.1:8000 --speed 10 --to 10m --goodput ttft:500ms,tpot:50ms
  replayd run trace.jsonl --url http://vllm:8000 --shard 0/4 --start next:1m --records shard0.jsonl`,
		Args: usage(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error { return o.run(c, w, args[0]) },
	}
	o.add(c)
	return c
}

func (o *runFlags) add(c *cobra.Command) {
	t, l := &o.target, &o.workload

	var help headings
	f := help.under("Target")
	f.StringVar(&t.URL, "url", "", "address of the server, such as http://127.0.0.1:8000 (required)")
	f.StringVar(&t.Model, "model", "", "name of the model; empty: the one that the server lists")
	f.StringVar(&t.API, "api", t.API, "chat or completions")
	f.StringVar(&t.Output, "output", t.Output, "length of the answers: exact (as in the trace), max (at most that) or free")
	f.Var(duration{&t.Timeouts.Connect}, "timeout-connect", "limit on opening a connection, such as 5s; 0: none")
	f.Var(duration{&t.Timeouts.FirstToken}, "timeout-first-token", "limit on the wait for the first token, such as 60s; 0: none")
	f.Var(duration{&t.Timeouts.Stall}, "timeout-stall", "limit on the gap between two chunks, such as 30s; 0: none")
	f.Var(duration{&t.Timeouts.Total}, "timeout-total", "limit on a whole request, such as 10m; 0: none")

	f = help.under("Trace")
	f.StringVar(&l.Trace.Format, "format", l.Trace.Format, "format of the trace: auto, mooncake or azure")
	f.Var(auto{&l.Trace.BlockTokens}, "block-tokens", "tokens in a block of hash_ids, or auto")
	f.BoolVar(&l.Trace.Strict, "strict", false, "refuse rows with more hash_ids than blocks instead of warning")
	f.Var(duration{&l.Trace.From}, "from", "start of the part of the trace to replay, such as 5m")
	f.Var(duration{&l.Trace.To}, "to", "end of the part of the trace to replay, such as 10m; 0: the end")
	f.IntVar(&o.requests, "requests", 0, "stop after so many rows; 0: all")
	f.IntVar(&l.Trace.MaxInput, "max-input", 0, "longest prompt in tokens; 0: no limit")
	f.IntVar(&l.Trace.MaxOutput, "max-output", 0, "longest answer in tokens; 0: no limit")
	f.StringVar(&l.Trace.OverLimit, "over-limit", l.Trace.OverLimit, "rows over these limits: filter, clip or send")
	f.StringVar(&o.shard, "shard", "0/1", "INDEX/OF: this process' part of the trace")

	f = help.under("Schedule")
	f.Float64Var(&l.Speed, "speed", l.Speed, "trace seconds per second, 0.001 to 1000")
	f.StringVar(&l.Arrival, "arrival", l.Arrival, "exact (the trace's own instants) or spread (evenly over each tick)")
	f.StringVar(&o.start, "start", "", "instant of the trace's beginning: RFC 3339, or next:1m for the next whole minute; empty: now")
	f.Var(duration{&o.duration}, "duration", "send only what is due within this time, such as 90s; 0: all")
	f.IntVar(&l.Lanes, "lanes", l.Lanes, "most requests in flight")
	f.StringVar(&l.Overload, "overload", l.Overload, "a request that finds no lane: wait (at most --max-wait) or drop")
	f.Var(duration{&l.MaxWait}, "max-wait", "longest wait for a lane, such as 10s; 0: without limit")

	f = help.under("Prompts")
	f.StringVar(&l.Prompt.Form, "prompt", l.Prompt.Form, "form of synthesized prompts: text or tokens (ids, completions only)")
	f.StringVar(&l.Prompt.Words, "words", l.Prompt.Words, "word list: main, or all (holds for Mistral and DeepSeek too)")
	f.Uint64Var(&l.Prompt.Seed, "seed", l.Prompt.Seed, "seed of the prompts' text")
	f.StringVar(&l.Prompt.Salt, "salt", l.Prompt.Salt, "loop (no run hits the cache of another), none or fixed:NAME")
	f.BoolVar(&l.Prompt.Calibrate, "calibrate", true, "take the chat template's own tokens off the prompts")

	f = help.under("Report")
	f.StringVar(&o.slo, "slo", "", "what every request must keep, such as ttft:500ms,tpot:50ms,e2e:10s: else exit 3, or see --min-goodput")
	f.StringVar(&o.goodput, "goodput", "", "the same, only counted and reported")
	f.Float64Var(&o.least, "min-goodput", 0, "exit 3 unless this share of the expected requests was good, 0 to 1; 1 with --slo")
	f.StringVar(&o.records, "records", "", "file to append a JSON line for each finished request to")
	f.StringVar(&o.listen, "web.listen-address", "", "serve /metrics there meanwhile, such as :9797; empty: nowhere")
	f.StringVar(&l.Name, "name", "run", "name of the workload in series, records and request ids")
	help.attach(c)
}

// flagOf names the flag behind a key of the configuration, for errors.
var flagOf = map[string]string{
	"targets[0].url": "--url", "targets[0].api": "--api", "targets[0].output": "--output",
	"targets[0].timeouts.connect": "--timeout-connect", "targets[0].timeouts.first_token": "--timeout-first-token",
	"targets[0].timeouts.stall": "--timeout-stall", "targets[0].timeouts.total": "--timeout-total",
	"workloads[0].name": "--name", "workloads[0].trace.path": "TRACE", "workloads[0].trace.format": "--format",
	"workloads[0].trace.block_tokens": "--block-tokens", "workloads[0].trace.from": "--from", "workloads[0].trace.to": "--to",
	"workloads[0].trace.max_input": "--max-input", "workloads[0].trace.max_output": "--max-output",
	"workloads[0].trace.over_limit": "--over-limit", "workloads[0].arrival": "--arrival", "workloads[0].speed": "--speed",
	"workloads[0].lanes": "--lanes", "workloads[0].overload": "--overload", "workloads[0].max_wait": "--max-wait",
	"workloads[0].prompt.form": "--prompt", "workloads[0].prompt.words": "--words", "workloads[0].prompt.salt": "--salt",
	"workloads[0].shard.index": "--shard", "workloads[0].shard.of": "--shard", "web.listen": "--web.listen-address",
}

// config is the configuration that the flags stand for; its error holds every fault.
func (o *runFlags) config(path string) (config.Config, measure.SLO, error) {
	var errs []error
	fault := func(flag string, err error) { errs = append(errs, fmt.Errorf("%s: %w", flag, err)) }
	c := config.Default()
	c.Records.Path = o.records
	if o.listen != "" {
		c.Web.Listen = o.listen
	}
	t, l := o.target, o.workload
	if t.URL != "" && !strings.Contains(t.URL, "://") {
		t.URL = "http://" + t.URL
	}
	t.Name = "server"
	if u, err := url.Parse(t.URL); err == nil && config.IsName(u.Hostname()) {
		t.Name = u.Hostname()
	}
	l.Target, l.Trace.Path, l.Repeat.Mode = t.Name, path, "once"
	l.Rows = o.requests
	if o.requests < 0 {
		fault("--requests", fmt.Errorf("want an integer ≥ 0, got %d", o.requests))
	}
	if o.duration < 0 {
		fault("--duration", fmt.Errorf("want a duration ≥ 0, got %v", o.duration))
	}
	if o.duration > 0 {
		if end := l.Trace.From + config.Duration(float64(o.duration)*l.Speed); l.Trace.To == 0 || end < l.Trace.To {
			l.Trace.To = end
		}
	}
	if err := shardOf(o.shard, &l.Shard); err != nil {
		fault("--shard", err)
	}
	name, bounds := "--goodput", o.goodput
	if o.slo != "" {
		name, bounds = "--slo", o.slo
	}
	if o.slo != "" && o.goodput != "" {
		fault("--goodput", errors.New("want only one of --slo and --goodput"))
	}
	slo, err := measure.ParseSLO(bounds)
	if err != nil {
		fault(name, err)
	}
	l.SLO = config.SLO{TTFT: config.Duration(slo.TTFT), TPOT: config.Duration(slo.TPOT), E2E: config.Duration(slo.E2E)}
	if !(o.least >= 0 && o.least <= 1) {
		fault("--min-goodput", fmt.Errorf("want 0 to 1, got %v", o.least))
	}
	if l.Epoch, err = startInstant(o.start, time.Now()); err != nil {
		fault("--start", err)
	}
	c.Targets, c.Workloads = []config.Target{t}, []config.Workload{l}
	for _, f := range c.Check() {
		name := flagOf[f.Path]
		if name == "" {
			name = f.Path
		}
		fault(name, errors.New(f.Want))
	}
	return c, slo, errors.Join(errs...)
}

// shardOf reads --shard.
func shardOf(s string, shard *config.Shard) error {
	index, of, _ := strings.Cut(s, "/")
	i, err := strconv.Atoi(index)
	n, errOf := strconv.Atoi(of)
	if err != nil || errOf != nil || i < 0 {
		return fmt.Errorf("want INDEX/OF such as 0/4, got %q", s)
	}
	shard.Index, shard.Of = config.Auto(i), n
	return nil
}

// startInstant reads --start; the zero instant for "".
func startInstant(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if every, ok := strings.CutPrefix(s, "next:"); ok {
		d, err := time.ParseDuration(every)
		if err != nil || d <= 0 {
			return time.Time{}, fmt.Errorf("want next: and a duration > 0, such as next:1m, got %q", s)
		}
		return now.Truncate(d).Add(d).Round(0), nil
	}
	at, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return time.Time{}, fmt.Errorf("want an instant such as 2026-01-02T15:04:05Z, or next:1m, got %q", s)
	}
	return at, nil
}

func (o *runFlags) run(c *cobra.Command, w *world, path string) error {
	if o.slo != "" && !c.Flags().Changed("min-goodput") {
		o.least = 1
	}
	cfg, slo, err := o.config(path)
	if err != nil {
		return wrongInput(err)
	}
	summary, progress, failures := measure.NewSummary(slo), &report.Progress{}, &report.Failures{}
	var failed []error
	var mu sync.Mutex
	once := daemon.Once{
		Options: daemon.Options{
			Config: cfg, UserAgent: "replayd/" + version.Version, Log: w.log, Stdin: w.in,
			Observers: []replay.Observer{summary, progress, failures},
			Dropped:   func(why measure.DropReason) { summary.Drop(why); progress.Drop(why) },
			Failed: func(err error) {
				mu.Lock()
				defer mu.Unlock()
				failed = append(failed, err)
			},
		},
		Serve: o.listen != "", Version: version.Version,
	}
	end := make(chan struct{})
	var shown sync.WaitGroup
	started := false
	once.Started = func(requests int) {
		started = true
		shown.Go(func() { progress.Show(w.err, terminal(w.err), interval(w.err), requests, end) })
	}
	err = once.Run(c.Context(), hardStop(c.Context()), prometheus.NewRegistry())
	close(end)
	shown.Wait()
	if !started {
		return err
	}
	failed = append(failed, err, summary.WriteTable(w.out), failures.Write(w.out))
	if err := errors.Join(failed...); err != nil {
		return err
	}
	return o.verdict(summary.Figures())
}

// verdict is the exit code of a run that came to its end.
func (o *runFlags) verdict(f measure.Figures) error {
	if f.Outcomes[measure.OK] == 0 {
		return errors.New("no request ended ok")
	}
	if share := f.GoodputShare(); share < o.least {
		return &exitError{exitMissed, fmt.Errorf("goodput: want a share of at least %v of the expected requests, got %.4f", o.least, share)}
	}
	return nil
}

// terminal says whether somebody looks.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// interval is how often progress is shown.
func interval(w io.Writer) time.Duration {
	if terminal(w) {
		return time.Second
	}
	return 10 * time.Second
}

// duration and auto let flags write scalars of the configuration, which read themselves.
type duration struct{ *config.Duration }

func (d duration) Set(s string) error { return d.UnmarshalText([]byte(s)) }
func (duration) Type() string         { return "duration" }

// String is what help shows as the default; 0 is none.
func (d duration) String() string {
	if d.Duration == nil || *d.Duration == 0 {
		return ""
	}
	return model.Duration(*d.Duration).String()
}

type auto struct{ *config.Auto }

func (a auto) Set(s string) error { return a.UnmarshalText([]byte(s)) }
func (auto) Type() string         { return "int" }
func (a auto) String() string {
	if a.Auto == nil || *a.Auto == config.AutoValue {
		return "auto"
	}
	return fmt.Sprint(int(*a.Auto))
}
