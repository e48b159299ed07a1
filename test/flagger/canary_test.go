//go:build real

package flagger_test

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	flaggerv1 "github.com/fluxcd/flagger/pkg/apis/flagger/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"replayd/test/rollouts"
)

// tick is Flagger's least interval of an analysis.
const tick = 10 * time.Second

// A scene is a rollout in a namespace of its own, of the same name as its comparison.
type scene struct {
	name          string
	before, after string // verdicts before and after the restart
	prometheus    string // empty: the one that scrapes
	change        func(*flaggerv1.Canary)
	want          flaggerv1.CanaryPhase
}

// add puts the objects of a scene into the cluster.
func (c cluster) add(t *testing.T, s scene, replayd, loadTester, prometheus string) {
	t.Helper()
	if s.prometheus != "" {
		prometheus = s.prometheus
	}
	template := load[flaggerv1.MetricTemplate](t, "metrictemplate.yaml", "http://prometheus-operated.monitoring:9090", prometheus)
	one := load[flaggerv1.Canary](t, "canary.yaml",
		"http://replayd.inference:9797", replayd, "http://flagger-loadtester/", loadTester, "interval: 3m", "interval: "+tick.String(),
		"comparisons/rollout/", "comparisons/"+s.name+"/", "comparison: rollout", "comparison: "+s.name, `comparison="rollout"`, `comparison="`+s.name+`"`)
	if s.change != nil {
		s.change(one)
	}
	template.Namespace, one.Namespace = s.name, s.name
	api := c.flagger.FlaggerV1beta1()
	if _, err := api.MetricTemplates(s.name).Create(t.Context(), template, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.Canaries(s.name).Create(t.Context(), one, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.deploy(t, s.name, "vllm:old")
}

func TestVerdicts(t *testing.T) {
	a, b := rollouts.StartDaemon(t), rollouts.StartDaemon(t)
	const held, waits = flaggerv1.CanaryPhaseProgressing, flaggerv1.CanaryPhaseWaitingPromotion
	prometheus, empty := rollouts.StartPrometheus(t, a, b), rollouts.StartPrometheus(t)
	nobody := "http://" + rollouts.FreeAddress(t)
	scenes := []scene{
		{name: "pass", before: rollouts.Undecided, after: rollouts.Pass, want: flaggerv1.CanaryPhaseSucceeded},
		{name: "pass-after-fail", before: rollouts.Fail, after: rollouts.Pass, want: flaggerv1.CanaryPhaseSucceeded},
		{name: "fail", before: rollouts.Undecided, after: rollouts.Fail, want: flaggerv1.CanaryPhaseFailed},
		{name: "fail-after-pass", before: rollouts.Pass, after: rollouts.Fail, want: flaggerv1.CanaryPhaseFailed},
		{name: "undecided", before: rollouts.Pass, after: rollouts.Undecided, want: held}, // the pass of the rollout before
		{name: "late-pass", before: rollouts.Undecided, after: rollouts.Undecided, want: held},
		{name: "late-fail", before: rollouts.Undecided, after: rollouts.Undecided, want: held},
		{name: "blue-green", before: rollouts.Pass, after: rollouts.Undecided, change: blueGreen(2), want: waits},
		{name: "one-iteration", before: rollouts.Pass, after: rollouts.Undecided, change: blueGreen(1), want: waits},
		{name: "without-pass", before: rollouts.Fail, after: rollouts.Pass, change: withoutLoadTester, want: flaggerv1.CanaryPhaseSucceeded},
		{name: "without-undecided", before: rollouts.Pass, after: rollouts.Undecided, change: withoutLoadTester, want: flaggerv1.CanaryPhaseFailed},
		{name: "without-version", before: rollouts.Pass, after: rollouts.Undecided, change: withoutVersion, want: held},
		{name: "rollback-hook", before: rollouts.Fail, after: rollouts.Pass, change: rollbackHook, want: flaggerv1.CanaryPhaseFailed},
		// No value for longer than threshold checks.
		{name: "unknown", before: rollouts.Pass, after: rollouts.Unknown, want: flaggerv1.CanaryPhaseFailed},
		{name: "two", before: rollouts.Pass, after: rollouts.Pass, want: flaggerv1.CanaryPhaseFailed},
		{name: "elsewhere", before: rollouts.Pass, after: rollouts.Pass, want: flaggerv1.CanaryPhaseFailed, prometheus: empty},
		{name: "no-prometheus", before: rollouts.Pass, after: rollouts.Pass, want: flaggerv1.CanaryPhaseFailed, prometheus: nobody},
		{name: "stale", before: rollouts.Pass, after: rollouts.Pass, want: flaggerv1.CanaryPhaseFailed},
		{name: "forgotten", before: rollouts.Pass, after: rollouts.Pass, want: flaggerv1.CanaryPhaseFailed},
		{name: "refused", before: rollouts.Pass, after: rollouts.Pass, want: flaggerv1.CanaryPhaseFailed},
	}
	c, loadTester := newCluster(), startLoadTester(t)
	for _, s := range scenes {
		a.Play(s.name, s.before, s.after)
		c.add(t, s, a.URL, loadTester, prometheus)
	}
	b.Play("two", rollouts.Pass, rollouts.Pass) // the restart reaches a alone
	a.Delay("stale", 3*time.Minute)
	a.Forget("forgotten")
	a.Refuse("refused")
	rollouts.Scraped(t, prometheus, `replayd_comparison_verdict{comparison="two",verdict="pass"} == 1`, 2)
	c.start(t, prometheus)
	for _, s := range scenes {
		c.reach(t, s.name, flaggerv1.CanaryPhaseInitialized, 6*tick)
	}
	for _, s := range scenes {
		c.deploy(t, s.name, "vllm:new")
	}
	for _, s := range scenes {
		t.Run(s.name, func(t *testing.T) {
			c.reach(t, s.name, s.want, 12*tick)
		})
	}
	t.Run("held", func(t *testing.T) {
		// All others have ended meanwhile: these have been held for some checks, without users. Each check has asked for
		// a restart.
		for name, phase := range map[string]flaggerv1.CanaryPhase{
			"undecided": held, "late-pass": held, "late-fail": held, "blue-green": waits, "one-iteration": waits,
		} {
			if got := c.reach(t, name, phase, 0); got.FailedChecks != 0 || got.CanaryWeight != 0 {
				t.Errorf("%s: want no failed check and no users, got %d and %d %%",
					name, got.FailedChecks, got.CanaryWeight)
			}
			if n := a.Restarts(name); n != 1 || phase == held && a.Calls(name) < 3 {
				t.Errorf("%s: want one restart of several calls, got %d of %d", name, n, a.Calls(name))
			}
		}
		// The README warns of these: each check restarts the comparison, or none.
		if n := a.Restarts("without-version"); n < 3 {
			t.Errorf("without-version: want the comparison restarted again and again, got %d restarts", n)
		}
		if n := a.Restarts("rollback-hook"); n != 0 {
			t.Errorf("rollback-hook: want the old fail believed before the restart, got %d restarts", n)
		}
		a.Say("late-pass", rollouts.Pass)
		a.Say("blue-green", rollouts.Pass)
		a.Say("late-fail", rollouts.Fail)
		c.reach(t, "late-pass", flaggerv1.CanaryPhaseSucceeded, 6*tick)
		c.reach(t, "blue-green", flaggerv1.CanaryPhaseSucceeded, 8*tick)
		c.reach(t, "late-fail", flaggerv1.CanaryPhaseFailed, 8*tick)
		c.reach(t, "undecided", held, 0)
	})
}

// At the first check with users, an interval after the restart, every sample that the query accepts is from after it.
// The hooks are called in this order, before there are users.
func TestTimes(t *testing.T) {
	analysis := load[flaggerv1.Canary](t, "canary.yaml").Spec.Analysis
	query := load[flaggerv1.MetricTemplate](t, "metrictemplate.yaml").Spec.Query
	age := regexp.MustCompile(`and timestamp\(.*> time\(\) - (\d+)`).FindStringSubmatch(query)
	if age == nil {
		t.Fatalf("want the longest age of samples in %s", query)
	}
	seconds, err := strconv.Atoi(age[1])
	if err != nil {
		t.Fatal(err)
	}
	interval, err := time.ParseDuration(analysis.Interval)
	if err != nil {
		t.Fatal(err)
	}
	if accepted := time.Duration(seconds) * time.Second; interval < accepted+30*time.Second {
		t.Errorf("want half a minute and more between samples, at most %v old, and the restart, %v before", accepted, interval)
	}
	if analysis.StepWeight != analysis.MaxWeight || analysis.MaxWeight == 0 {
		t.Errorf("want one step, for the gate is behind the last, got %d of %d", analysis.StepWeight, analysis.MaxWeight)
	}
	var types []flaggerv1.HookType
	for _, h := range analysis.Webhooks {
		types = append(types, h.Type)
	}
	want := []flaggerv1.HookType{
		flaggerv1.PreRolloutHook, flaggerv1.PreRolloutHook, flaggerv1.ConfirmTrafficIncreaseHook,
	}
	if !slices.Equal(types, want) || !strings.Contains(analysis.Webhooks[0].URL, "/restart?version_key=checksum") {
		t.Errorf("want the hooks %v, the first one with the checksum, got %v, %s", want, types, analysis.Webhooks[0].URL)
	}
}
