//go:build real

package kubernetes_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// validate checks manifests against the schemas of Kubernetes 1.30 and of the operator's kinds.
func validate(t *testing.T, manifests string) (said string, err error) {
	t.Helper()
	program := tool(t, "./install", "kubernetes", "kubectl-validate")
	crds := filepath.Join(filepath.Dir(program), "crds")
	out, err := exec.CommandContext(t.Context(), program, "--version", "1.30", "--local-crds", crds, write(t, "manifests.yaml", manifests)).CombinedOutput()
	return string(out), err
}

// restricted returns the violations of the restricted Pod Security Standard by a pod, or "".
func restricted(t *testing.T, pod corev1.PodTemplateSpec) string {
	t.Helper()
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	result := policy.AggregateCheckResults(evaluator.EvaluatePod(level, &pod.ObjectMeta, &pod.Spec))
	if result.Allowed {
		return ""
	}
	return result.ForbiddenReason() + ": " + result.ForbiddenDetail()
}

// hold checks what every manifest must satisfy.
func hold(t *testing.T, manifests string) {
	t.Helper()
	if said, err := validate(t, manifests); err != nil {
		t.Errorf("%v: %s", err, said)
	}
	for _, pod := range templates(t, objects(t, manifests)) {
		if against := restricted(t, pod); against != "" {
			t.Errorf("restricted: %s", against)
		}
		if links := pod.Spec.EnableServiceLinks; links == nil || *links {
			t.Error("enableServiceLinks: want false")
		}
		if token := pod.Spec.AutomountServiceAccountToken; token == nil || *token {
			t.Error("automountServiceAccountToken: want false")
		}
		c, _ := replayd(t, pod.Spec)
		if !c.Resources.Limits.Cpu().IsZero() || c.Resources.Requests.Cpu().IsZero() || c.Resources.Limits.Memory().IsZero() {
			t.Errorf("want a request and no limit of CPU, and a limit of memory, got %v", c.Resources)
		}
		for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
			if probe != nil && probe.HTTPGet != nil && (probe.HTTPGet.Port.StrVal != "http-replayd" || !strings.HasPrefix(probe.HTTPGet.Path, "/-/")) {
				t.Errorf("want probes of replayd itself, got %v", probe.HTTPGet)
			}
		}
	}
	if n := count(objects(t, manifests), "Secret"); n != 0 {
		t.Errorf("want secrets by reference only, got %d objects of that kind", n)
	}
}

func TestChartIsLinted(t *testing.T) {
	for _, mode := range modes {
		for _, values := range [][]string{full(mode), plain(mode)} {
			if out, said, err := helm(t, append([]string{"lint", "--strict", chart}, values...)...); err != nil {
				t.Errorf("%s: %v\n%s%s", mode, err, out, said)
			}
		}
	}
}

func TestChartHoldsToTheStandards(t *testing.T) {
	for _, mode := range modes {
		t.Run(mode+" with everything", func(t *testing.T) { hold(t, render(t, chart, full(mode)...)) })
		t.Run(mode, func(t *testing.T) { hold(t, render(t, chart, plain(mode)...)) })
	}
}
