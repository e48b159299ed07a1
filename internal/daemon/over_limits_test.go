package daemon

import (
	"context"
	"log/slog"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"replayd/internal/config"
	"replayd/internal/metrics"
)

// A comparison of which a limit filters every row is refused before it begins. The daemon, whose trace may be replaced, is not.
func TestEveryRowIsFiltered(t *testing.T) {
	c := conf([]config.Target{target("stable", nobody), target("canary", nobody)}, looped("load", "stable", write(t, "trace.jsonl", rows(4))))
	one := config.DefaultComparison()
	one.Name, one.Workload, one.Candidate = "rollout", "load", "canary"
	c.Comparisons = []config.Comparison{one}
	for _, l := range []struct {
		limit   func(*config.Trace)
		patient bool
		want    string
	}{
		{func(t *config.Trace) { t.MaxInput = 19 }, false, "workloads[0] \"load\": trace.max_input: want 20 tokens or more, the shortest prompt of the trace, got 19: every row is filtered"},
		{func(t *config.Trace) { t.MaxOutput = 3 }, false, "workloads[0] \"load\": trace.max_output: want 4 tokens or more, the shortest output of the trace, got 3: every row is filtered"},
		{func(t *config.Trace) { t.MaxContext = 23 }, false, "workloads[0] \"load\": trace.max_context: want 24 tokens or more, the shortest prompt and output together of the trace, got 23: every row is filtered"},
		{func(t *config.Trace) { t.MaxInput = 20 }, false, ""},
		{func(t *config.Trace) { t.MaxInput, t.OverLimit = 19, "clip" }, false, ""},
		{func(t *config.Trace) { t.MaxInput = 19 }, true, ""},
	} {
		next := c
		next.Workloads = []config.Workload{c.Workloads[0]}
		l.limit(&next.Workloads[0].Trace)
		reg := prometheus.NewRegistry()
		g, err := Build(context.Background(), Options{
			Config: next, Meter: metrics.NewMeter(reg), Log: slog.New(slog.DiscardHandler), Failed: func(error) {}, Patient: l.patient,
		})
		got := ""
		if err != nil {
			got = err.Error()
		} else if err := g.Close(); err != nil {
			t.Error(err)
		}
		if got != l.want {
			t.Errorf("got %q, want %q", got, l.want)
		}
	}
}
