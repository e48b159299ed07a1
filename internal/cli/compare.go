package cli

import (
	"cmp"
	"slices"
	"time"

	"replayd/internal/canary"
	"replayd/internal/config"
	"replayd/internal/fault"
	"replayd/internal/measure"
)

// Compare are the flags of compare.
type Compare struct {
	canary.Options
	Workload  config.Workload
	Baseline  config.Target
	Candidate config.Target
	clients   [2]string // files of prometheus/common's HTTP client configuration
	model     string
	SLO       string
	Longest   time.Duration
	AA        bool // both servers are equal: measure how far their ratio wanders
	HTML      string
}

// NewCompare returns the flags of compare with their defaults.
func NewCompare() *Compare {
	return &Compare{
		Options: canary.Defaults(), Workload: config.DefaultWorkload(), Baseline: config.DefaultTarget(),
		Candidate: config.DefaultTarget(), Longest: 30 * time.Minute,
	}
}

// Table returns the flags.
func (o *Compare) Table() Table {
	w := &o.Workload
	return Table{
		{"Servers", "", []Row{
			{"baseline", "targets[0].url targets[0]", &addresses{&o.Baseline}, "address of the server to compare with, " +
				"or those of its pods: a:80,b:80 or dns+NAME:PORT (required)"},
			{"candidate", "targets[1].url targets[1]", &addresses{&o.Candidate}, "the same of " +
				"the server that is judged (required)"},
			{"model,m", "", &o.model, "name of the model on both; empty: the only one that each lists"},
			{"baseline-model", "targets[0].model", &o.Baseline.Model, "name of the model on the baseline"},
			{"candidate-model", "targets[1].model", &o.Candidate.Model, "name of the model on the candidate"},
			{"baseline-http.config.file", "targets[0].http", &o.clients[0], "Prometheus' HTTP client configuration: keys, " +
				"passwords, TLS"},
			{"candidate-http.config.file", "targets[1].http", &o.clients[1], "the same for the candidate"},
			{"api", "targets[0].api", (*string)(&o.Baseline.API), "chat or completions; when not given, by the end of --baseline"},
			{"stream", "targets[0].stream", &o.Baseline.Stream, "stream the answers; false: only e2e is compared"},
		}},
		{"Load", "workloads[0]", []Row{
			{"arrival", "arrival", (*string)(&w.Arrival), "due times: exact (the trace's) or spread (over the tick)"},
			{"speed", "speed", &w.Speed, "trace seconds per second, 0.001 to 1000"},
			{"turn-delay-max", "turn_delay.max", &w.TurnDelay.Max, "longest delay between turns or wait after a parent, " +
				"such as 60s; 0: no limit"},
			{"lanes", "lanes", &w.Lanes, "most requests in flight on each side"},
			{"max-input", "trace.max_input", &w.Trace.MaxInput, "longest prompt in tokens; 0: no limit"},
			{"max-output", "trace.max_output", &w.Trace.MaxOutput, "longest output in tokens; 0: no limit"},
			{"over-limit", "trace.over_limit", (*string)(&w.Trace.OverLimit), "longer rows: filter, clip or send"},
			{"slo", "slo", &o.SLO, "bounds, such as ttft:2s,tpot:100ms: an answer beyond them is bad"},
		}},
		{"Verdict", "comparisons[0]", []Row{
			{"for", "", &o.Longest, "longest time until a verdict, such as 2h"},
			{"tolerance", "tolerance", Share(&o.Tolerance), "how much longer a latency may be, such as 0.05 or 5%"},
			{"alpha", "alpha", Share(&o.Alpha), "greatest chance that a fail is wrong, and that a pass is"},
			{"min-pairs", "min_pairs", &o.MinPairs, "least pairs of a block that met no queue"},
			{"min-time", "min_time", &o.MinTime, "least length of a block"},
			{"wander", "wander", Share(&o.Wander), "how far the ratio of two equal servers wanders, such as 0.03 or 3%: see --aa"},
			{"warm-up", "warm_up", &o.WarmUp, "pairs do not count for so long, at first and after a restart"},
			{"require", "require", (*string)(&o.Require), "what a verdict must be about: pair (these servers) or pods (the version; it " +
				"takes 3 pods or more on each side)"},
			{"aa", "", &o.AA, "measure for --for how far two equal servers wander; no verdict"},
			{"tolerance-tail", "tolerance_tail", Share(&o.ToleranceTail), "least excess of much slower requests that is a fail"},
			{"tolerance-queued", "tolerance_queued", Share(&o.ToleranceQueued), "least excess of queued requests that is a " +
				"fail"},
			{"tolerance-bad", "tolerance_bad", Share(&o.ToleranceBad), "least excess of bad requests that is a fail"},
		}},
		{"Output", "", []Row{
			{"html", "", &o.HTML, "write a page with charts to this file at the end"},
		}},
	}
}

// Config returns the configuration of the comparison.
func (o *Compare) Config(trace string) (config.Config, error) {
	c := config.Default()
	var f fault.List
	for i, t := range []*config.Target{&o.Baseline, &o.Candidate} {
		t.Name = canary.Side(i).String()
		f.If(t.URL == "", "--"+t.Name, "want the address of a server, got none")
		t.Model = cmp.Or(t.Model, o.model)
		t.API, t.Stream = o.Baseline.API, o.Baseline.Stream
		if o.clients[i] != "" {
			http, err := HTTPConfig(o.clients[i])
			f = append(f, under("--"+t.Name+"-http.config.file", err)...)
			t.HTTP = http
		}
	}
	w := &o.Workload
	w.Name, w.Target, w.Trace.Path, w.Repeat.Align = "compare", o.Baseline.Name, trace, "start"
	if o.SLO != "" {
		slo, err := measure.ParseSLO(o.SLO)
		f = append(f, under("--slo", err)...)
		w.SLO.Bounds = config.BoundsOf(slo)
	}
	f.If(w.Arrival != "exact" && w.Arrival != "spread", "--arrival", "want exact or spread, got %q", w.Arrival)
	f.If(o.Longest <= 0, "--for", "want a time above 0, got %v", o.Longest)
	f.If(o.Longest > 0 && o.Require == canary.ScopePods && o.Longest <= canary.FirstLook, "--for",
		"want over %v, when pods are first looked at, got %v", canary.FirstLook, o.Longest)
	f = append(f, o.Check().Under("comparisons[0]").Named(o.Table().NameOf)...)
	c.Targets, c.Workloads = []config.Target{o.Baseline, o.Candidate}, []config.Workload{*w}
	comparison := config.Comparison{Name: "compare", Workload: w.Name, Candidate: o.Candidate.Name, Options: o.Options}
	c.Comparisons = []config.Comparison{comparison}
	return c, f.Err()
}

// ByFlag returns the faults found when files and targets were opened, with their flags. --api is for both targets and
// has one fault.
func (o *Compare) ByFlag(found fault.List) error {
	second := func(f fault.Fault) bool { return f.Key == "targets[1].api" }
	return shown(slices.DeleteFunc(slices.Clone(found), second), o.Table().NameOf)
}
