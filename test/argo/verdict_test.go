//go:build real

package argo_test

import (
	"strings"
	"testing"
	"time"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"replayd/test/rollouts"
)

// looks is how often the verdict is looked at in these tests, every second.
const looks = 4

// A scene is a comparison that is played while an analysis runs.
type scene struct {
	name       string
	prometheus string // empty: the one that scrapes
	without    string // a part of the query that is left out
	want       v1alpha1.AnalysisPhase
	measured   int // verdicts; 0: as many as there are looks
}

// brief returns the AnalysisRun of a scene, as the Rollout makes it, with shorter times.
func brief(t *testing.T, s scene, prometheus, replayd string) *v1alpha1.AnalysisRun {
	t.Helper()
	run := analysisRun(t, "rollout.yaml", s.name)
	if s.prometheus != "" {
		prometheus = s.prometheus
	}
	values := map[string]string{"comparison": s.name, "version": "7d4b9", "prometheus": prometheus, "replayd": replayd}
	if s.without != "" {
		values["comparison"] = strings.TrimSuffix(s.name, "-unguarded")
	}
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
	if s.without != "" {
		shorter := strings.Replace(m.Provider.Prometheus.Query, s.without, "", 1)
		if shorter == m.Provider.Prometheus.Query {
			t.Fatalf("want %q in the query", s.without)
		}
		m.Provider.Prometheus.Query = shorter
	}
	return run
}

func TestVerdicts(t *testing.T) {
	a, b := rollouts.StartDaemon(t), rollouts.StartDaemon(t)
	const longAgo = 3 * time.Minute // above what the query accepts, below Prometheus' lookback of 5 minutes
	for name, play := range map[string][2]string{
		"pass":             {rollouts.Undecided, rollouts.Pass},
		"pass-after-fail":  {rollouts.Fail, rollouts.Pass},
		"fail":             {rollouts.Undecided, rollouts.Fail},
		"fail-after-pass":  {rollouts.Pass, rollouts.Fail},
		"undecided":        {rollouts.Undecided, rollouts.Undecided},
		"undecided-before": {rollouts.Pass, rollouts.Undecided}, // the pass of the rollout before
		"unknown":          {rollouts.Pass, rollouts.Unknown},
		"two-pass":         {rollouts.Undecided, rollouts.Pass},
		"two-fail":         {rollouts.Undecided, rollouts.Fail},
		"elsewhere":        {rollouts.Undecided, rollouts.Pass},
		"no-prometheus":    {rollouts.Undecided, rollouts.Pass},
		"refused":          {rollouts.Pass, rollouts.Pass},
		"forgotten":        {rollouts.Pass, rollouts.Pass},
		"stale":            {rollouts.Pass, rollouts.Pass},
		"retried":          {rollouts.Fail, rollouts.Pass}, // a retry may not draw again
	} {
		a.Play(name, play[0], play[1])
	}
	b.Play("two-pass", rollouts.Pass, rollouts.Pass) // the restart reaches a alone
	b.Play("two-fail", rollouts.Pass, rollouts.Pass)
	a.Refuse("refused")
	a.Forget("forgotten")
	a.Delay("stale", longAgo)
	a.Judge("retried", "7d4b9")
	prometheus, empty := rollouts.StartPrometheus(t, a, b), rollouts.StartPrometheus(t)
	rollouts.Scraped(t, prometheus, `replayd_comparison_verdict{comparison="two-pass",verdict="pass"}`, 2)
	rollouts.Scraped(t, prometheus, `replayd_comparison_verdict{comparison="stale",verdict="pass"} == 1`, 1)

	scenes := []scene{
		{name: "pass", want: v1alpha1.AnalysisPhaseSuccessful, measured: 1},
		{name: "pass-after-fail", want: v1alpha1.AnalysisPhaseSuccessful, measured: 1},
		{name: "fail", want: v1alpha1.AnalysisPhaseFailed, measured: 1},
		{name: "fail-after-pass", want: v1alpha1.AnalysisPhaseFailed, measured: 1},
		{name: "retried", want: v1alpha1.AnalysisPhaseFailed, measured: 1},
		{name: "undecided", want: v1alpha1.AnalysisPhaseInconclusive},
		{name: "undecided-before", want: v1alpha1.AnalysisPhaseInconclusive},
		{name: "unknown", want: v1alpha1.AnalysisPhaseInconclusive},
		{name: "two-pass", want: v1alpha1.AnalysisPhaseInconclusive},
		{name: "two-fail", want: v1alpha1.AnalysisPhaseInconclusive},
		{name: "elsewhere", want: v1alpha1.AnalysisPhaseInconclusive, prometheus: empty},
		{name: "stale", want: v1alpha1.AnalysisPhaseInconclusive},
		{name: "forgotten", want: v1alpha1.AnalysisPhaseInconclusive},
		{name: "no-prometheus", want: v1alpha1.AnalysisPhaseError, prometheus: "http://" + rollouts.FreeAddress(t), measured: 2},
		// The restart fails, and the verdict is not looked at.
		{name: "refused", want: v1alpha1.AnalysisPhaseError, measured: -1},
		{name: "not-configured", want: v1alpha1.AnalysisPhaseError, measured: -1},
		// Each of the query's conditions is needed: without it these pass.
		{
			name: "two-pass-unguarded", want: v1alpha1.AnalysisPhaseSuccessful, measured: 1,
			without: `and on() count(replayd_comparison_verdict{comparison="{{args.comparison}}",verdict="pass"}) == 1`,
		},
		{
			name: "stale-unguarded", want: v1alpha1.AnalysisPhaseSuccessful, measured: 1,
			without: `and timestamp(replayd_comparison_epoch_timestamp_seconds{comparison="{{args.comparison}}"}) > time() - 120`,
		},
		{
			name: "forgotten-unguarded", want: v1alpha1.AnalysisPhaseSuccessful, measured: 1,
			without: `and ignoring(version) ` +
				`replayd_comparison_version_info{comparison="{{args.comparison}}",version="{{args.version}}"}`,
		},
	}
	c := startController(t)
	for _, s := range scenes {
		c.create(t, brief(t, s, prometheus, a.URL))
	}
	for _, s := range scenes {
		t.Run(s.name, func(t *testing.T) {
			run := c.ended(t, s.name, time.Minute)
			if run.Status.Phase != s.want {
				t.Errorf("want %s, got %s: %s: %+v", s.want, run.Status.Phase, run.Status.Message, run.Status.MetricResults)
			}
			want := s.measured
			switch want {
			case 0:
				want = looks
			case -1:
				want = 0
			}
			got := 0
			for _, r := range run.Status.MetricResults {
				if r.Name == "verdict" {
					got = len(r.Measurements)
				}
			}
			if got != want {
				t.Errorf("want %d measurements of the verdict, got %d: %+v", want, got, run.Status.MetricResults)
			}
			t.Logf("%s: %s", run.Status.Phase, run.Status.Message)
		})
	}
	for name, want := range map[string]int{"pass": 1, "retried": 0} {
		if n := a.Restarts(name); n != want || a.Calls(name) != 1 {
			t.Errorf("%s: want %d restarts of one call, got %d of %d", name, want, n, a.Calls(name))
		}
	}
}

// A pass that becomes a fail within its epoch fails the next look, and one that a new epoch forgets is inconclusive.
func TestVerdictsThatChange(t *testing.T) {
	d := rollouts.StartDaemon(t)
	d.Play("changes", rollouts.Undecided, rollouts.Undecided)
	prometheus := rollouts.StartPrometheus(t, d)
	rollouts.Scraped(t, prometheus, `replayd_comparison_verdict{comparison="changes",verdict="undecided"} == 1`, 1)
	c := startController(t)
	d.Play("changes", rollouts.Pass, rollouts.Fail)
	for i, want := range []v1alpha1.AnalysisPhase{v1alpha1.AnalysisPhaseFailed, v1alpha1.AnalysisPhaseInconclusive} {
		run := brief(t, scene{name: "changes"}, prometheus, d.URL)
		run.Name = []string{"first", "second"}[i]
		c.create(t, run)
		ended := c.ended(t, run.Name, time.Minute)
		if ended.Status.Phase != want {
			t.Errorf("%s: want %s, got %s: %s", run.Name, want, ended.Status.Phase, ended.Status.Message)
		}
		d.Play("changes", rollouts.Fail, rollouts.Undecided)
	}
}
