// Package cli turns the command lines of run, aiperf profile and trace_replay.py into a configuration.
package cli

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"replayd/internal/config"
	"replayd/internal/export"
	"replayd/internal/measure"
)

// SampleEvery is the interval at which the metrics of engines and GPUs are read for the summary of a run, which may be
// short.
const SampleEvery = time.Second

// An Order is a parsed command line.
type Order struct {
	Config      config.Config
	Who         Spelling
	SLO         measure.SLO
	Session     measure.SessionSLO
	Concurrency []int // several: one run each; empty: no closed loop
	Table       string
	Artifacts   string // folder; "": none
	SavePrompts string // file; "": none
	SaveExcel   string // file; "": none
	Collect     bool   // keep each request, for a later report
}

// Order evaluates the flags. Its error joins all faults.
func (o *Flags) Order(args []string, given *pflag.FlagSet) (Order, error) {
	var errs []error
	fault := func(flag string, err error) { errs = append(errs, fmt.Errorf("%s: %w", flag, err)) }
	who, err := spelled(given, o.peers)
	if err != nil {
		return Order{}, err
	}
	if who == Own && o.Profile {
		who = AIPerf
	}
	refusedFlags(given, fault)
	path := ""
	if len(args) > 0 {
		path = args[0]
	}
	switch who {
	case AIPerf:
		o.peerDefaults(who, given)
		o.takeAIPerf(path, given, fault)
	case TraceReplay:
		o.peerDefaults(who, given)
		o.takeTraceReplay(path, given, fault)
	default:
		o.Workload.Trace.Path = path
	}
	r := Order{Who: who, Artifacts: o.artifacts}
	if o.Workload.AtOnce != 0 && !given.Changed("arrival") {
		o.Workload.Arrival = "sessions"
	}
	r.Concurrency = o.closed(given, fault)
	r.SLO = o.levels(fault)
	r.Session = measure.SessionSLO{Makespan: time.Duration(o.Workload.SLO.Session.Makespan)}
	r.Table = o.layout(who, fault)
	o.saving(&r, given, fault)
	for _, p := range o.Percentiles {
		if !(p > 0 && p < 100) {
			fault("--percentiles", fmt.Errorf("want numbers above 0 and below 100, got %v", p))
		}
	}
	if o.Gpus < 0 {
		fault("--gpus", fmt.Errorf("want an integer ≥ 0, got %d", o.Gpus))
	}
	r.Config = o.config(r.SLO, fault)
	unresolved := r.Config.Resolve()
	for _, f := range append(unresolved, r.Config.Check().Without(unresolved)...) {
		name := o.flagOf(f.Path, who)
		if name == "TRACE" && path == "" {
			f.Want = "want the path of a trace, or flags that say what to send, got none (replayd run --help-aliases has those)"
		}
		fault(name, errors.New(f.Want))
	}
	return r, errors.Join(errs...)
}

// closed reads --concurrency. With an arrival that has due times, --concurrency limits the requests in flight.
func (o *Flags) closed(given *pflag.FlagSet, fault faults) []int {
	w := &o.Workload
	if o.concurrency == "" {
		if w.Arrival == "concurrency" {
			return []int{w.Lanes}
		}
		return nil
	}
	var all []int
	for text := range strings.SplitSeq(o.concurrency, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || n < 1 || n > unlimited {
			fault("--concurrency", fmt.Errorf("want an integer from 1 to %d, or several with commas between them, got %q", unlimited, text))
			return nil
		}
		all = append(all, n)
	}
	if given.Changed("lanes") {
		fault("--lanes", errors.New("contradicts --concurrency: both bound what is in flight"))
	}
	w.Lanes = all[0]
	if !given.Changed("arrival") && config.Timed(w.Arrival) && !o.Aliases.fixedSchedule {
		w.Arrival = "concurrency"
	}
	if w.Arrival == "concurrency" && o.Aliases.datasetType == "weka_trace" { // AIPerf's concurrency is that of sessions
		w.Arrival, w.AtOnce, w.Lanes = "sessions", all[0], unlimited
	}
	if w.Arrival == "concurrency" && o.Few {
		o.requests = max(FewRequests, FewRounds*w.Lanes)
	}
	if w.Arrival != "concurrency" {
		w.WarmupLanes = all[0]
		if len(all) > 1 {
			fault("--concurrency", fmt.Errorf("want one number with arrival %s, got %d", w.Arrival, len(all)))
		}
		return nil
	}
	return all
}

// levels reads --slo and --goodput, in replayd's or AIPerf's spelling.
func (o *Flags) levels(fault faults) measure.SLO {
	name, text := "--goodput", o.goodput
	if o.SLO != "" {
		name, text = "--slo", o.SLO
	}
	if o.SLO != "" && o.goodput != "" {
		fault("--goodput", errors.New("want only one of --slo and --goodput"))
	}
	slo, err := measure.ParseSLO(text)
	if err != nil {
		fault(name, err)
	}
	return slo
}

// layout returns the program whose table is printed.
func (o *Flags) layout(who Spelling, fault faults) string {
	switch o.table {
	case "":
		return string(who)
	case string(Own), string(AIPerf), string(TraceReplay):
	default:
		fault("--table", fmt.Errorf("want replayd, aiperf or tracereplay, got %q", o.table))
	}
	return o.table
}

// saving determines where files are written.
func (o *Flags) saving(r *Order, given *pflag.FlagSet, fault faults) {
	a := &o.Aliases
	dir := cmp.Or(a.resultDir, r.Artifacts, ".")
	if a.savePrompts {
		r.SavePrompts = filepath.Join(dir, "prompts.jsonl")
	}
	if a.saveExcel {
		r.SaveExcel = filepath.Join(dir, export.XLSXName)
	}
	if given.Changed("result-dir") && !a.savePrompts && !a.saveExcel {
		fault("--result-dir", errors.New("want --save-result or --save-prompts too: nothing else goes there"))
	}
	if a.Slice > 0 && r.Artifacts == "" {
		fault("--slice-duration", errors.New("want --artifact-dir too: the slices are files there"))
	}
}

// config returns the configuration that the flags describe.
func (o *Flags) config(slo measure.SLO, fault faults) config.Config {
	c := config.Default()
	c.Records = config.Records{Path: o.records} // no rotation: a run keeps all of its records
	c.MaxWaiting = o.maxWaiting
	if o.Listen != "" {
		c.Web.Listen = o.Listen
	}
	if name := o.sessionHeader; name != "" {
		if value, twice := o.Workload.Request.Headers[name]; twice && value != config.SessionMark {
			fault("--session-header", fmt.Errorf("contradicts --header %s: want one of them", name))
		}
		o.setHeader(name, config.SessionMark)
	}
	t, l := o.Target, o.Workload
	if t.URL != "" {
		t.URL = WithScheme(t.URL)
	}
	o.logIn(&t.HTTP.HTTPClientConfig, fault)
	if o.client != "" {
		http, err := HTTPConfig(o.client)
		if err != nil {
			fault("--http.config.file", err)
		}
		t.HTTP = config.HTTP{HTTPClientConfig: http}
	}
	t.Name = "server"
	if u, err := url.Parse(t.URL); err == nil && config.IsName(u.Hostname()) {
		t.Name = u.Hostname()
	}
	l.Target = t.Name
	o.bounded(&l, fault)
	for _, d := range []struct {
		flag  string
		value config.Duration
	}{{"--duration", o.duration}, {"--wait-ready", o.Wait}, {"--hold", o.Hold}} {
		if d.value < 0 {
			fault(d.flag, fmt.Errorf("want a duration ≥ 0, got %v", d.value))
		}
	}
	if o.Hold > 0 && o.Listen == "" {
		fault("--hold", errors.New("want --web.listen-address too: without it there is no /metrics to hold"))
	}
	if err := shardOf(o.shard, &l.Shard); err != nil {
		fault("--shard", err)
	}
	l.SLO.Bounds = config.BoundsOf(slo)
	if !(o.Least >= 0 && o.Least <= 1) {
		fault("--min-goodput", fmt.Errorf("want 0 to 1, got %v", o.Least))
	}
	if o.Least > 0 && o.Least < 1 { // with 0 or 1 there is no error budget to show: keep the default
		l.SLO.Objective = o.Least
	}
	var err error
	if l.Epoch, err = StartInstant(o.Start, time.Now()); err != nil {
		fault("--start", err)
	}
	if !l.Epoch.IsZero() && l.Warmup.Requests > 0 {
		fault("--warmup", errors.New("contradicts --start: the plan begins when the warm-up is over"))
	}
	c.Targets, c.Workloads = []config.Target{t}, []config.Workload{l}
	o.beside(&c, fault)
	return c
}

// bounded sets the end of the plan.
func (o *Flags) bounded(l *config.Workload, fault faults) {
	l.Repeat.Mode, l.Rows = "once", o.requests
	if o.requests < 0 {
		fault("--requests", fmt.Errorf("want an integer ≥ 0, got %d", o.requests))
	}
	switch {
	case o.duration <= 0:
	case config.Timed(l.Arrival):
		if end := l.Trace.From + config.Duration(float64(o.duration)*l.Speed); l.Trace.To == 0 || end < l.Trace.To {
			l.Trace.To = end
		}
	default:
		l.Duration = o.duration
	}
}

// beside adds further metrics pages and GPUs to read.
func (o *Flags) beside(c *config.Config, fault faults) {
	if o.artifacts != "" {
		c.Targets[0].Metrics.Interval = config.Duration(SampleEvery)
	}
	for i, page := range o.Aliases.serverMetrics {
		t := config.DefaultTarget()
		t.Metrics.Interval = config.Duration(SampleEvery)
		t.Name, t.URL, t.Metrics.URL = fmt.Sprintf("metrics%d", i+1), c.Targets[0].URL, WithScheme(page)
		c.Targets = append(c.Targets, t)
	}
	for _, page := range o.Aliases.gpuTelemetry {
		g := config.DefaultGPU()
		g.Interval = config.Duration(SampleEvery)
		g.Target = c.Targets[0].Name
		if page == "pynvml" { // AIPerf's name for the GPUs of this host
			g.NvidiaSMI = "auto"
			c.GPUs = append(c.GPUs, g)
			continue
		}
		if !isAddress(page) {
			fault("--gpu-telemetry", fmt.Errorf("want pynvml or addresses of dcgm-exporters such as node1:9400/metrics, got %q", page))
		}
		page = WithScheme(page)
		t := config.DefaultTarget() // a target per page keeps their figures apart; no request is sent to it
		t.Name, t.URL, t.Metrics.URL, t.Metrics.Interval = fmt.Sprintf("gpus%d", len(c.GPUs)+1), c.Targets[0].URL, page, 0
		c.Targets = append(c.Targets, t)
		g.Target, g.DCGMExporter = t.Name, page
		c.GPUs = append(c.GPUs, g)
	}
}

// shardOf reads --shard.
func shardOf(s string, shard *config.Shard) error {
	index, of, _ := strings.Cut(s, "/")
	n, err := strconv.Atoi(of)
	if err != nil || shard.Index.UnmarshalText([]byte(index)) != nil {
		return fmt.Errorf("want INDEX/OF such as 0/4 or auto/4, got %q", s)
	}
	shard.Of = n
	return nil
}

// startSoonest is the least time between now and a start of next:. With an earlier start, rows that are due before the
// first messages are built would be lost.
const startSoonest = 250 * time.Millisecond

// StartInstant reads --start. It returns the zero time for "".
func StartInstant(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if every, ok := strings.CutPrefix(s, "next:"); ok {
		d, err := time.ParseDuration(every)
		if err != nil || d <= 0 {
			return time.Time{}, fmt.Errorf("want next: and a duration > 0, such as next:1m, got %q", s)
		}
		return now.Add(startSoonest).Truncate(d).Add(d).Round(0), nil
	}
	at, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return time.Time{}, fmt.Errorf("want an instant such as 2026-01-02T15:04:05Z, or next:1m, got %q", s)
	}
	return at, nil
}
