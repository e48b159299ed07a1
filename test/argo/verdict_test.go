//go:build real

package argo_test

import (
	"testing"
	"time"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"replayd/test/rollouts"
)

// looks is how often the verdict is looked at in these tests, every second.
const looks = 4

// brief returns the AnalysisRun of a comparison, as the Rollout makes it, with shorter times.
func brief(t *testing.T, name, prometheus, replayd string) *v1alpha1.AnalysisRun {
	t.Helper()
	run := analysisRun(t, "rollout.yaml", name)
	values := map[string]string{"comparison": name, "version": "7d4b9", "prometheus": prometheus, "replayd": replayd}
	for i := range run.Spec.Args {
		value := values[run.Spec.Args[i].Name]
		run.Spec.Args[i].Value = &value
	}
	// The next try would come after all looks.
	metric(t, run.Spec.Metrics, "restart").ConsecutiveErrorLimit = new(intstr.FromInt32(0))
	m := metric(t, run.Spec.Metrics, "verdict")
	m.InitialDelay, m.Interval = "5s", "1s" // several scrapes, also of a busy machine
	if m.Count.IntValue()-1 != m.InconclusiveLimit.IntValue() {
		t.Fatalf("want inconclusiveLimit one below count, got %v of %v", m.InconclusiveLimit, m.Count)
	}
	m.Count, m.InconclusiveLimit = new(intstr.FromInt32(looks)), new(intstr.FromInt32(looks-1))
	m.ConsecutiveErrorLimit = new(intstr.FromInt32(1))
	return run
}

// A pass promotes, and a fail aborts; what is not the verdict about this version, of one replayd, from now, does
// neither.
func TestVerdicts(t *testing.T) {
	a, b := rollouts.StartDaemon(t), rollouts.StartDaemon(t)
	scenes := []struct {
		name, before, after string
		want                v1alpha1.AnalysisPhase
		measured            int // verdicts
	}{
		{"promoted", rollouts.Fail, rollouts.Pass, v1alpha1.AnalysisPhaseSuccessful, 1},
		{"aborted", rollouts.Pass, rollouts.Fail, v1alpha1.AnalysisPhaseFailed, 1},
		// the pass of the rollout before
		{"undecided", rollouts.Pass, rollouts.Undecided, v1alpha1.AnalysisPhaseInconclusive, looks},
		{"two", rollouts.Undecided, rollouts.Pass, v1alpha1.AnalysisPhaseInconclusive, looks},
		{"stale", rollouts.Pass, rollouts.Pass, v1alpha1.AnalysisPhaseInconclusive, looks},
		{"forgotten", rollouts.Pass, rollouts.Pass, v1alpha1.AnalysisPhaseInconclusive, looks},
		{"refused", rollouts.Pass, rollouts.Pass, v1alpha1.AnalysisPhaseError, 0}, // the verdict is not looked at
	}
	for _, s := range scenes {
		a.Play(s.name, s.before, s.after)
	}
	b.Play("two", rollouts.Pass, rollouts.Pass) // the restart reaches a alone
	a.Refuse("refused")
	a.Forget("forgotten")
	a.Delay("stale", 3*time.Minute) // above what the query accepts, below Prometheus' lookback of 5 minutes
	prometheus := rollouts.StartPrometheus(t, a, b)
	rollouts.Scraped(t, prometheus, `replayd_comparison_verdict{comparison="two",verdict="pass"}`, 2)
	rollouts.Scraped(t, prometheus, `replayd_comparison_verdict{comparison="stale",verdict="pass"} == 1`, 1)
	c := startController(t)
	for _, s := range scenes {
		c.create(t, brief(t, s.name, prometheus, a.URL))
	}
	for _, s := range scenes {
		t.Run(s.name, func(t *testing.T) {
			run := c.ended(t, s.name, time.Minute)
			if run.Status.Phase != s.want {
				t.Errorf("want %s, got %s: %s: %+v", s.want, run.Status.Phase, run.Status.Message, run.Status.MetricResults)
			}
			got := 0
			for _, r := range run.Status.MetricResults {
				if r.Name == "verdict" {
					got = len(r.Measurements)
				}
			}
			if got != s.measured {
				t.Errorf("want %d measurements of the verdict, got %d: %+v", s.measured, got, run.Status.MetricResults)
			}
		})
	}
}
