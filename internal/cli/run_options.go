// Package cli has the flags of run, compare, sim and trace synth, and those of aiperf profile, vllm bench serve and trace_replay.py, and
// turns them into a configuration or options.
package cli

import (
	"cmp"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"replayd/internal/config"
	"replayd/internal/export"
	"replayd/internal/measure"
	"replayd/internal/openai"
	"replayd/internal/scalar"
	"replayd/internal/schedule"
)

// SampleEvery is the interval at which the metrics of engines and GPUs are read for the summary of a run, which may be
// short.
const SampleEvery = time.Second

// An Order is a parsed command line.
type Order struct {
	Config      config.Config
	Who         Spelling
	SLO         measure.SLO
	Concurrency []int // several: one run each; empty: no closed loop
	Table       string
	Artifacts   string // folder; "": none
	SavePrompts string // file; "": none
	SaveExcel   string // file; "": none
	Collect     bool   // keep each request, for a later report
}

// Order evaluates the flags. Its error joins all faults.
func (o *Flags) Order(args []string) (Order, error) {
	o.wrong, o.Notes = nil, nil
	path := ""
	if len(args) > 0 {
		path = args[0]
	}
	who, err := o.spelled(path)
	if err != nil {
		return Order{}, err
	}
	if who == Own && o.Profile {
		who = AIPerf
	}
	if o.takeForeign() {
		return Order{}, o.wrong.Err() // the other faults follow from these
	}
	for _, two := range sameMeaning {
		o.wrong.If(o.given.Changed(two[0]) && o.given.Changed(two[1]), "--"+two[0], "want only one of it and --%s", two[1])
	}
	switch who {
	case AIPerf:
		o.peerDefaults(who)
		o.takeAIPerf(path)
	case TraceReplay:
		o.peerDefaults(who)
		o.takeTraceReplay(path)
	case VLLM:
		o.peerDefaults(who)
		o.takeVLLM(path)
	default:
		o.Workload.Trace.Path = path
	}
	r := Order{Who: who, Artifacts: o.artifacts}
	if o.Workload.AtOnce != 0 && !o.given.Changed("arrival") {
		o.Workload.Arrival = "sessions"
	}
	r.Concurrency = o.closed()
	r.SLO = o.levels(who)
	r.Table = o.layout(who)
	o.saving(&r)
	for _, p := range o.Percentiles {
		o.wrong.If(!(p > 0 && p < 100), "--percentiles", "want numbers above 0 and below 100, got %v", p)
	}
	o.wrong.AtLeast("--gpus", o.Gpus, 0)
	r.Config = o.config(r.SLO)
	unresolved := r.Config.Resolve()
	for _, f := range append(unresolved, config.Without(r.Config.Check(), unresolved)...) {
		name := o.flagOf(f.Key, who)
		if name == "TRACE" && path == "" {
			f.Want = "want the path of a trace, or flags that say what to send, got none (replayd run --help-aliases has those)"
		}
		o.wrong.Add(name, "%s", f.Want)
	}
	for i, f := range o.wrong {
		o.wrong[i].Key, o.wrong[i].Want = o.asTyped(f.Key), o.asTyped(f.Want)
	}
	return r, o.wrong.Err()
}

// sameMeaning are pairs of flags that say the same: of two values one would be lost.
var sameMeaning = [][2]string{
	{"endpoint", "endpoint-path"},
	{"endpoint-type", "api"},
	{"backend", "api"},
	{"request-rate", "rate"},
	{"request-count", "requests"},
	{"random-seed", "seed"},
	{"warmup-request-count", "warmup"},
	{"arrival-smoothness", "burstiness"},
	{"benchmark-duration", "duration"},
	{"request-timeout-seconds", "timeout-total"},
	{"wait-for-model-timeout", "wait-ready"},
	{"slo-attainment-fraction", "min-goodput"},
	{"connection-reuse-strategy", "connections"},
	{"conversation-turn-delay-ratio", "turn-delay-scale"},
	{"goodput", "slo"},
	{"inter-turn-delay-cap-seconds", "turn-delay-max"},
	{"fixed-schedule-start-offset", "from"},
	{"fixed-schedule-end-offset", "to"},
	{"request-cancellation-rate", "cancel"},
	{"request-cancellation-delay", "cancel-after"},
	{"trajectory-start-min-ratio", "start-within"},
	{"trajectory-start-max-ratio", "start-within"},
	{"streaming", "stream"},
	{"served-model-name", "model"},
}

// closed reads --concurrency. With an arrival that has due times, --concurrency limits the requests in flight.
func (o *Flags) closed() []int {
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
			o.wrong.Add("--concurrency", "want an integer from 1 to %d, or several with commas between them, got %q", unlimited, text)
			return nil
		}
		all = append(all, n)
	}
	o.wrong.If(o.given.Changed("lanes"), "--lanes", "contradicts --concurrency: both bound what is in flight")
	w.Lanes = all[0]
	if !o.given.Changed("arrival") && w.Timed() && !o.Aliases.fixedSchedule {
		w.Arrival = "concurrency"
	}
	if w.Arrival == "concurrency" && o.Aliases.datasetType == "weka_trace" { // AIPerf's concurrency is that of sessions
		w.Arrival, w.AtOnce, w.Lanes = "sessions", all[0], unlimited
	}
	if w.Arrival == "concurrency" && o.Few {
		w.Rows = max(FewRequests, FewRounds*w.Lanes)
	}
	if w.Arrival != "concurrency" {
		w.WarmupLanes = all[0]
		o.wrong.If(len(all) > 1, "--concurrency", "want one number with arrival %s, got %d", w.Arrival, len(all))
		return nil
	}
	return all
}

// levels reads --slo and --goodput, in replayd's or AIPerf's spelling.
func (o *Flags) levels(who Spelling) measure.SLO {
	name, text := "--goodput", string(o.goodput)
	if who == VLLM { // its bounds are in ms
		text = vllmBound.ReplaceAllString(strings.ReplaceAll(text, "e2el", "e2e"), "${1}ms$2")
	}
	if o.SLO != "" {
		name, text = "--slo", o.SLO
	}
	slo, err := measure.ParseSLO(text)
	o.fault(name, err)
	return slo
}

// layout returns the program whose table is printed.
func (o *Flags) layout(who Spelling) string {
	switch o.table {
	case "":
		if who == VLLM { // the table is the one of its own script, from before vllm bench
			who = TraceReplay
		}
		return string(who)
	case string(Own), string(AIPerf), string(TraceReplay):
	default:
		o.wrong.Add("--table", "want replayd, aiperf or tracereplay, got %q", o.table)
	}
	return o.table
}

// saving determines where files are written.
func (o *Flags) saving(r *Order) {
	a := &o.Aliases
	dir := cmp.Or(a.resultDir, r.Artifacts, ".")
	if a.savePrompts {
		r.SavePrompts = filepath.Join(dir, "prompts.jsonl")
	}
	if a.saveExcel {
		r.SaveExcel = filepath.Join(dir, export.XLSXName)
	}
	o.wrong.If(o.given.Changed("result-dir") && !o.given.Changed("save-result") && !o.given.Changed("save-prompts"),
		"--result-dir", "want --save-result or --save-prompts too: nothing else goes there")
	o.wrong.If(a.Slice > 0 && r.Artifacts == "",
		"--slice-duration", "want --artifact-dir too: the slices are files there")
}

// config returns the configuration that the flags describe.
func (o *Flags) config(slo measure.SLO) config.Config {
	c := config.Default()
	c.Records = config.Records{Path: o.records} // no rotation: a run keeps all of its records
	if o.Listen != "" {
		c.Web.Listen = o.Listen
	}
	if name := o.sessionHeader; name != "" {
		if value, twice := o.Workload.Request.Headers[name]; twice && value != openai.SessionMark {
			o.wrong.Add("--session-header", "contradicts --header %s: want one of them", name)
		}
		o.setHeader(name, openai.SessionMark)
	}
	t, l := o.Target, o.Workload
	if t.URL != "" {
		t.URL = WithScheme(t.URL)
	}
	o.logIn(&t.HTTP)
	if o.client != "" {
		http, err := HTTPConfig(o.client)
		o.fault("--http.config.file", err)
		t.HTTP = http
	}
	if !o.given.Changed("api") && !o.given.Changed("endpoint-type") && !o.given.Changed("backend") {
		t.FollowAddress()
	}
	t.Name = "server"
	if u, err := url.Parse(t.URL); err == nil && config.IsName(u.Hostname()) {
		t.Name = u.Hostname()
	}
	l.Target = t.Name
	o.bounded(&l)
	o.wrong.NotNegative("--duration", o.Duration)
	o.wrong.NotNegative("--wait-ready", o.Wait)
	o.wrong.NotNegative("--hold", o.Hold)
	o.wrong.If(o.Hold > 0 && o.Listen == "",
		"--hold", "want --web.listen-address too: without it there is no /metrics to hold")
	o.fault("--shard", shardOf(o.shard, &l.Shard))
	l.SLO.Bounds = config.BoundsOf(slo)
	o.wrong.Share(o.flagOf("workloads[0].slo.objective", AIPerf), o.Least)
	if o.Least > 0 && o.Least < 1 { // with 0 or 1 there is no error budget to show: keep the default
		l.SLO.Objective = o.Least
	}
	var err error
	l.Epoch, err = StartInstant(o.Start, time.Now())
	o.fault("--start", err)
	o.wrong.If(!l.Epoch.IsZero() && l.Warmup.Requests > 0,
		"--warmup", "contradicts --start: the plan begins when the warm-up is over")
	c.Targets, c.Workloads = []config.Target{t}, []config.Workload{l}
	o.takeMetricsPages(&c)
	return c
}

// bounded sets the end of the plan.
func (o *Flags) bounded(l *config.Workload) {
	l.Repeat.Mode = "once"
	o.wrong.AtLeast("--requests", l.Rows, 0)
	switch {
	case o.Duration <= 0:
	case l.Timed():
		if end := l.Trace.From + time.Duration(float64(o.Duration)*l.Speed); l.Trace.To == 0 || end < l.Trace.To {
			l.Trace.To = end
		}
	default:
		l.Duration = o.Duration
	}
}

// takeMetricsPages adds further metrics pages and GPUs to read.
func (o *Flags) takeMetricsPages(c *config.Config) {
	if o.artifacts != "" {
		c.Targets[0].Metrics.Interval = SampleEvery
	}
	rows, err := config.RowsOf(o.metricsMap)
	o.fault("--metrics-map", err)
	c.Targets[0].Metrics.Map = rows
	for i, page := range o.Aliases.serverMetrics {
		t := config.DefaultTarget()
		t.Metrics.Interval, t.Metrics.Map = SampleEvery, rows
		t.Name, t.URL, t.Metrics.URL = fmt.Sprintf("metrics%d", i+1), c.Targets[0].URL, WithScheme(page)
		t.FollowAddress() // of the requests, of which it gets none
		c.Targets = append(c.Targets, t)
	}
	for _, page := range o.Aliases.gpuTelemetry {
		if page == "dashboard" {
			o.Notes = append(o.Notes, [2]string{"--gpu-telemetry", "reads GPUs where it has pynvml or addresses of dcgm-exporters"})
			continue
		}
		g := config.DefaultGPU()
		g.Interval = SampleEvery
		g.Target = c.Targets[0].Name
		if page == "pynvml" { // AIPerf's name for the GPUs of this host
			g.NvidiaSMI = "auto"
			c.GPUs = append(c.GPUs, g)
			continue
		}
		o.wrong.If(!isAddress(page),
			"--gpu-telemetry", "want pynvml or addresses of dcgm-exporters such as node1:9400/metrics, got %q", page)
		page = WithScheme(page)
		t := config.DefaultTarget() // a target per page keeps their figures apart; no request is sent to it
		t.Name, t.URL, t.Metrics.URL, t.Metrics.Interval = fmt.Sprintf("gpus%d", len(c.GPUs)+1), c.Targets[0].URL, page, 0
		t.FollowAddress()
		c.Targets = append(c.Targets, t)
		g.Target, g.DCGMExporter = t.Name, page
		c.GPUs = append(c.GPUs, g)
	}
}

func shardOf(s string, shard *schedule.Shard) error {
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
		d, err := scalar.ParseDuration(every)
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
