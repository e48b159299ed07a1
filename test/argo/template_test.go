//go:build real

package argo_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/validation"
	"github.com/argoproj/argo-rollouts/utils/analysis"
	"github.com/argoproj/argo-rollouts/utils/replicaset"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// examples are the files of Rollouts.
var examples = []string{"rollout.yaml", "experiment.yaml"}

// asked returns the arguments that a step of an example gives to an analysis, and the name of its template.
func asked(t *testing.T, rollout *v1alpha1.Rollout) (template string, args []v1alpha1.AnalysisRunArgument) {
	t.Helper()
	for _, s := range rollout.Spec.Strategy.Canary.Steps {
		switch {
		case s.Analysis != nil && len(s.Analysis.Templates) == 1:
			return s.Analysis.Templates[0].TemplateName, s.Analysis.Args
		case s.Experiment != nil && len(s.Experiment.Analyses) == 1 && s.Experiment.Analyses[0].RequiredForCompletion:
			return s.Experiment.Analyses[0].TemplateName, s.Experiment.Analyses[0].Args
		case s.SetWeight != nil && *s.SetWeight > 0:
			t.Fatal("want the analysis before there are users")
		}
	}
	t.Fatal("want a step with one analysis")
	return "", nil
}

// candidate is the ReplicaSet of the new version.
var candidate = &appsv1.ReplicaSet{
	ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.DefaultRolloutUniqueLabelKey: "7d4b9"}},
}

// analysisRun returns the AnalysisRun that an example's Rollout makes of the template.
func analysisRun(t *testing.T, example, name string) *v1alpha1.AnalysisRun {
	t.Helper()
	rollout, template := load[v1alpha1.Rollout](t, example), load[v1alpha1.AnalysisTemplate](t, "analysistemplate.yaml")
	of, given := asked(t, rollout)
	if of != template.Name {
		t.Fatalf("want the template %s, got %s", template.Name, of)
	}
	args, err := analysis.BuildArgumentsForRolloutAnalysisRun(given, nil, candidate, rollout)
	if err != nil {
		t.Fatal(err)
	}
	run, err := analysis.NewAnalysisRunFromTemplates([]*v1alpha1.AnalysisTemplate{template}, nil, args, nil, nil, nil, nil, name, "", namespace)
	if err != nil {
		t.Fatal(err)
	}
	if len(run.Spec.Args) != len(args) {
		t.Fatalf("want every argument used, %v, got %v", args, run.Spec.Args)
	}
	return run
}

// Argo Rollouts accepts the template, and the Rollouts with it. The version is the hash of the candidate's template.
func TestValidation(t *testing.T) {
	for _, example := range examples {
		t.Run(example, func(t *testing.T) { valid(t, example) })
	}
}

func valid(t *testing.T, example string) {
	run := analysisRun(t, example, "valid")
	restart, err := analysis.ResolveMetricArgs(*metric(t, run.Spec.Metrics, "restart"), run.Spec.Args)
	if err != nil {
		t.Fatal(err)
	}
	const want = "http://replayd.inference:9797/-/comparisons/rollout/restart?version=7d4b9"
	if got := restart.Provider.Web.URL; got != want {
		t.Errorf("want %s, got %s", want, got)
	}
	for _, m := range run.Spec.Metrics {
		resolved, err := analysis.ResolveMetricArgs(m, run.Spec.Args)
		if err != nil {
			t.Fatal(err)
		}
		if err := analysis.ValidateMetric(*resolved); err != nil {
			t.Errorf("%s: %v", m.Name, err)
		}
	}
	rollout := load[v1alpha1.Rollout](t, example)
	// What the controller takes from the Deployment that workloadRef names.
	labels := map[string]string{"app.kubernetes.io/name": "vllm"}
	rollout.Spec.SetResolvedSelector(&metav1.LabelSelector{MatchLabels: labels})
	rollout.Spec.SetResolvedTemplate(corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "vllm", Image: "vllm"}}},
	})
	for _, fault := range validation.ValidateRollout(rollout) {
		t.Error(fault)
	}
}

// Argo's pod counts for rollout.yaml: as many candidates as stable pods while there are no users, and not fewer when
// they come.
func TestPodsBeforeUsers(t *testing.T) {
	rollout := load[v1alpha1.Rollout](t, "rollout.yaml")
	rollout.Status.StableRS, rollout.Status.CurrentPodHash = "stable", "7d4b9"
	seen := false
	for i, s := range rollout.Spec.Strategy.Canary.Steps {
		rollout.Status.CurrentStepIndex = new(int32(i))
		count, weight := replicaset.GetCanaryReplicasOrWeight(rollout)
		seen = seen || s.Analysis != nil
		if users := replicaset.GetCurrentSetWeight(rollout); s.Analysis != nil && users != 0 {
			t.Errorf("step %d: want no users, got %d %%", i, users)
		}
		if seen && (count != nil || weight != 100) {
			t.Errorf("step %d: want as many pods as are stable, from the analysis on, got %v, %d %%", i, count, weight)
		}
	}
}

// The first look at the verdict comes so late that every sample that the query accepts is from after all tries of the
// restart.
func TestTimes(t *testing.T) {
	run := analysisRun(t, "rollout.yaml", "times")
	restart, verdict := metric(t, run.Spec.Metrics, "restart"), metric(t, run.Spec.Metrics, "verdict")
	bounds := regexp.MustCompile(`> time\(\) - (\d+)`).FindAllStringSubmatch(verdict.Provider.Prometheus.Query, -1)
	if len(bounds) != 1 || !strings.Contains(verdict.Provider.Prometheus.Query, "and timestamp(") {
		t.Fatalf("want the longest age of samples, got %v", bounds)
	}
	seconds, err := strconv.Atoi(bounds[0][1])
	if err != nil {
		t.Fatal(err)
	}
	if restart.InitialDelay != "" || restart.Interval != "" || restart.ConsecutiveErrorLimit == nil ||
		restart.Provider.Web.TimeoutSeconds != 0 {
		t.Fatalf("want one restart, at the begin, with a limit of tries, got %+v", restart)
	}
	const each = 20 * time.Second // Argo's limit of a request, and its pause before the next one
	tries := time.Duration(restart.ConsecutiveErrorLimit.IntValue()+1) * each
	first, age := duration(t, verdict.InitialDelay), time.Duration(seconds)*time.Second
	if first < tries+age+30*time.Second {
		t.Errorf("want half a minute and more between samples, at most %v old, and the last try of the restart, "+
			"%v after the first: got %v", age, tries, first)
	}
}

func duration(t *testing.T, s v1alpha1.DurationString) time.Duration {
	t.Helper()
	d, err := s.Duration()
	if err != nil {
		t.Fatal(err)
	}
	return d
}
