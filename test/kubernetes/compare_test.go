//go:build real

package kubernetes_test

import (
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// The Job of a comparison as `kubectl apply -k` sends it.
func TestCompareJob(t *testing.T) {
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), repository+"/deploy/kubernetes/compare")
	if err != nil {
		t.Fatal(err)
	}
	text, err := made.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	hold(t, string(text))
	job := one[batchv1.Job](t, objects(t, string(text)), "Job", "replayd-compare")
	c, _ := replayd(t, job.Spec.Template.Spec)
	if c.Image != "registry.example.com/replayd:0.1.0" {
		t.Errorf("want the image of the registry that the README names, got %s", c.Image)
	}

	// The program accepts the arguments, and ends with a code that is not tried again, since the trace is not on this machine.
	said, err := run(t, "0", c.Args...)
	if !strings.HasPrefix(said, "replayd: open /traces/trace.jsonl: no such file") {
		t.Errorf("%q: want only the trace missed, got %q", c.Args, said)
	}
	final := []int32{2, 3, 4}
	var exit *exec.ExitError
	if !errors.As(err, &exit) || !slices.Contains(final, int32(exit.ExitCode())) {
		t.Errorf("want a final exit code, got %v", err)
	}
	rules := job.Spec.PodFailurePolicy.Rules
	if len(rules) != 2 || rules[0].Action != batchv1.PodFailurePolicyActionFailJob || rules[0].OnExitCodes == nil ||
		*rules[0].OnExitCodes.ContainerName != c.Name || rules[0].OnExitCodes.Operator != batchv1.PodFailurePolicyOnExitCodesOpIn ||
		!slices.Equal(rules[0].OnExitCodes.Values, final) {
		t.Errorf("want the Job failed by exit codes %v of %s, got %+v", final, c.Name, rules)
	}
	if len(rules) == 2 && (rules[1].Action != batchv1.PodFailurePolicyActionIgnore || rules[1].OnPodConditions[0].Type != corev1.DisruptionTarget) {
		t.Errorf("want a drained node not counted, got %+v", rules[1])
	}
	// https://kubernetes.io/docs/concepts/workloads/controllers/job/#pod-failure-policy
	if job.Spec.Template.Spec.RestartPolicy != corev1.RestartPolicyNever {
		t.Errorf("want restartPolicy Never, which podFailurePolicy needs, got %s", job.Spec.Template.Spec.RestartPolicy)
	}
	i := slices.IndexFunc(c.Args, func(a string) bool { return strings.HasPrefix(a, "--for=") })
	if i < 0 {
		t.Fatalf("want --for in %q", c.Args)
	}
	longest, err := time.ParseDuration(strings.TrimPrefix(c.Args[i], "--for="))
	if err != nil {
		t.Fatal(err)
	}
	if deadline := time.Duration(*job.Spec.ActiveDeadlineSeconds) * time.Second; deadline < longest+10*time.Minute {
		t.Errorf("want a deadline above %v, got %v", longest, deadline)
	}
}
