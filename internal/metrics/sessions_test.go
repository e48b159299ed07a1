package metrics

import (
	"strings"
	"testing"

	"replayd/test/measuretest"

	"github.com/prometheus/client_golang/prometheus"
)

// A workload with sessions has these series more: the counts and shares, and 3 histograms.
func TestSeriesOfSessions(t *testing.T) {
	count := func(o WorkloadOptions, begun bool) (n int) {
		reg := prometheus.NewPedanticRegistry()
		w := NewMeter(reg).Workload(labels, o)
		if begun {
			w.SessionBegun()
		}
		for line := range strings.Lines(text(t, reg)) {
			if !strings.HasPrefix(line, "#") {
				n++
			}
		}
		return n
	}
	plain, o := count(WorkloadOptions{}, false), WorkloadOptions{Trace: TraceInfo{Sessions: 2}}
	counts, histograms := 1+3+1+1+4+1, 20+3+11+3+13+3 // begun, outcomes, in progress, good, parts, objective
	for name, got := range map[string]int{"a trace with sessions": count(o, false), "a session has begun": count(WorkloadOptions{}, true)} {
		if want := plain + counts + histograms; got != want || want != plain+64 {
			t.Errorf("%s: %d series, want %d", name, got, want)
		}
	}
}

// A session ends in the series in which it began, whatever name the model has then.
func TestSessionsUnderSeveralModels(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := NewMeter(reg)
	target := vllm(m)
	w := learner(m, target)
	target.Serves("a")
	w.SessionBegun()
	w.SessionBegun()
	target.Serves("b")
	w.SessionBegun()
	for _, s := range measuretest.Sessions()[:2] {
		w.SessionEnded(&s)
	}
	p := gather(t, reg)
	for model, want := range map[string][3]float64{"a": {2, 2, 0}, "b": {1, 0, 1}} {
		l := "model=" + model
		if got := [3]float64{p.sum("replayd_sessions_begun_total", l), p.sum("replayd_sessions_total", l), p.sum("replayd_sessions_in_progress", l)}; got != want {
			t.Errorf("%s: begun, ended and in progress are %v, want %v", model, got, want)
		}
	}
}
