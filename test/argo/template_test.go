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
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// analysisRun returns the AnalysisRun that the example's Rollout makes of the template.
func analysisRun(t *testing.T, name string) *v1alpha1.AnalysisRun {
	t.Helper()
	rollout, template := load[v1alpha1.Rollout](t, "rollout.yaml"), load[v1alpha1.AnalysisTemplate](t, "analysistemplate.yaml")
	var step *v1alpha1.RolloutAnalysis
	for _, s := range rollout.Spec.Strategy.Canary.Steps {
		if s.Analysis != nil {
			step = s.Analysis
		}
	}
	if step == nil || len(step.Templates) != 1 || step.Templates[0].TemplateName != template.Name {
		t.Fatalf("want a step with the template %s, got %+v", template.Name, step)
	}
	args, err := analysis.BuildArgumentsForRolloutAnalysisRun(step.Args, nil, nil, rollout)
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

// Argo Rollouts accepts the template, and the Rollout with it.
func TestValidation(t *testing.T) {
	run := analysisRun(t, "valid")
	for _, m := range run.Spec.Metrics {
		resolved, err := analysis.ResolveMetricArgs(m, run.Spec.Args)
		if err != nil {
			t.Fatal(err)
		}
		if err := analysis.ValidateMetric(*resolved); err != nil {
			t.Errorf("%s: %v", m.Name, err)
		}
	}
	rollout := load[v1alpha1.Rollout](t, "rollout.yaml")
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

// The first look at the verdict comes so late that every sample that the query accepts is from after the restart. An epoch that
// began in this analysis is accepted until its end.
func TestTimes(t *testing.T) {
	run := analysisRun(t, "times")
	restart, verdict := metric(t, run.Spec.Metrics, "restart"), metric(t, run.Spec.Metrics, "verdict")
	bounds := regexp.MustCompile(`> time\(\) - (\d+)`).FindAllStringSubmatch(verdict.Provider.Prometheus.Query, -1)
	if len(bounds) != 2 || !strings.Contains(verdict.Provider.Prometheus.Query, "and timestamp(") {
		t.Fatalf("want the longest age of samples and of the epoch, got %v", bounds)
	}
	var ages [2]time.Duration
	for i, b := range bounds {
		n, err := strconv.Atoi(b[1])
		if err != nil {
			t.Fatal(err)
		}
		ages[i] = time.Duration(n) * time.Second
	}
	first, interval := duration(t, verdict.InitialDelay), duration(t, verdict.Interval)
	if first < ages[0]+2*time.Minute {
		t.Errorf("want 2 minutes and more between samples, at most %v old, and the restart, %v before: the two clocks differ", ages[0], first)
	}
	if whole := first + time.Duration(verdict.Count.IntValue())*interval; ages[1] < whole+30*time.Minute {
		t.Errorf("want an epoch accepted for longer than an analysis, %v, with half an hour of errors, got %v", whole, ages[1])
	}
	if restart.ConsecutiveErrorLimit == nil || restart.ConsecutiveErrorLimit.IntValue() != 0 {
		t.Errorf("want the analysis ended where the restart fails, got %v", restart.ConsecutiveErrorLimit)
	}
	if restart.InitialDelay != "" || restart.Interval != "" {
		t.Errorf("want one restart, at the begin, got %+v", restart)
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
