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

// add puts a rollout into the cluster, in a namespace of the same name as its comparison.
func (c cluster) add(t *testing.T, name, replayd, loadTester, prometheus string) {
	t.Helper()
	template := load[flaggerv1.MetricTemplate](t, "metrictemplate.yaml", "http://prometheus-operated.monitoring:9090", prometheus)
	one := load[flaggerv1.Canary](t, "canary.yaml",
		"http://replayd.inference:9797", replayd, "http://flagger-loadtester/", loadTester, "interval: 3m", "interval: "+tick.String(),
		"comparisons/rollout/", "comparisons/"+name+"/", "comparison: rollout", "comparison: "+name, `comparison="rollout"`,
		`comparison="`+name+`"`)
	template.Namespace, one.Namespace = name, name
	api := c.flagger.FlaggerV1beta1()
	if _, err := api.MetricTemplates(name).Create(t.Context(), template, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.Canaries(name).Create(t.Context(), one, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.deploy(t, name, "vllm:old")
}

// A pass promotes, a fail rolls back, and an undecided comparison holds, without users. What is not the verdict of
// one replayd, from now, is no value for longer than threshold checks.
func TestVerdicts(t *testing.T) {
	a, b := rollouts.StartDaemon(t), rollouts.StartDaemon(t)
	prometheus := rollouts.StartPrometheus(t, a, b)
	scenes := []struct {
		name, before, after string
		want                flaggerv1.CanaryPhase
	}{
		{"promoted", rollouts.Fail, rollouts.Pass, flaggerv1.CanaryPhaseSucceeded},
		{"aborted", rollouts.Pass, rollouts.Fail, flaggerv1.CanaryPhaseFailed},
		{"undecided", rollouts.Pass, rollouts.Undecided, flaggerv1.CanaryPhaseProgressing}, // the pass of the rollout before
		{"two", rollouts.Pass, rollouts.Pass, flaggerv1.CanaryPhaseFailed},
		{"stale", rollouts.Pass, rollouts.Pass, flaggerv1.CanaryPhaseFailed},
		{"forgotten", rollouts.Pass, rollouts.Pass, flaggerv1.CanaryPhaseFailed},
		{"refused", rollouts.Pass, rollouts.Pass, flaggerv1.CanaryPhaseFailed},
	}
	c, loadTester := newCluster(), startLoadTester(t)
	for _, s := range scenes {
		a.Play(s.name, s.before, s.after)
		c.add(t, s.name, a.URL, loadTester, prometheus)
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
		t.Run(s.name, func(t *testing.T) { c.reach(t, s.name, s.want, 12*tick) })
	}
	// All others have ended meanwhile: this one has been held for some checks, each of which asked for a restart.
	got := c.reach(t, "undecided", flaggerv1.CanaryPhaseProgressing, 0)
	if n := a.Restarts("undecided"); got.FailedChecks != 0 || got.CanaryWeight != 0 || n != 1 || a.Calls("undecided") < 3 {
		t.Errorf("undecided: want no failed check, no users and one restart of several calls, got %d, %d %% and %d of %d",
			got.FailedChecks, got.CanaryWeight, n, a.Calls("undecided"))
	}
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
	// A fail, −1, is below the least value.
	if least := analysis.Metrics[0].ThresholdRange.Min; least == nil || *least != 0 || !strings.Contains(query,
		"- ignoring(verdict)") {
		t.Errorf("want pass less fail, and a least value of 0, got %v and %s", least, query)
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
