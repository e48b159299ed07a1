//go:build real

package kubernetes_test

import (
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

const examples = repository + "/deploy/kubernetes/"

// built returns an example as `kubectl apply -k` sends it.
func built(t *testing.T, folder string) string {
	t.Helper()
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), examples+folder)
	if err != nil {
		t.Fatal(err)
	}
	text, err := made.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	hold(t, string(text))
	return string(text)
}

// has checks parts of a text.
func has(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("want %q in\n%s", part, text)
		}
	}
}

func TestSidecar(t *testing.T) {
	text := built(t, "sidecar")
	all := objects(t, text)
	container, first := replayd(t, templates(t, all)[0].Spec)
	if !first || container.RestartPolicy == nil || *container.RestartPolicy != "Always" || container.StartupProbe != nil {
		t.Errorf("want a native sidecar without a startupProbe, got %+v", container)
	}
	has(t, flat(text), "image: registry.example.com/replayd:0.1.0 ", watched, "mountPath: /etc/replayd/config ",
		"terminationGracePeriodSeconds: 60 ")
	accepted(t, "0", configMap(t, all, "replayd", "replayd.yaml"))
	if said, _ := run(t, "0", container.Args...); !strings.HasSuffix(said, "replayd.yaml: no such file or directory\n") {
		t.Errorf("%q: got %q", container.Args, said)
	}
	trace := configMap(t, all, "replayd-trace", "trace.jsonl")
	if len(trace) < 1000 || !strings.HasPrefix(read(t, repository+"/internal/synth/sample.jsonl"), trace) {
		t.Errorf("want the beginning of the sample, got %d bytes", len(trace))
	}
	has(t, read(t, chart+"/Chart.yaml"), "\nappVersion: 0.1.0\n") // that of the image
}

// The optional files of the example, and the server alone.
func TestSidecarOptions(t *testing.T) {
	for _, name := range []string{"podmonitor.yaml", "dcgm-exporter-of-the-node.yaml", "../base/vllm.yaml"} {
		text := read(t, filepath.Join(examples+"sidecar", name))
		if said, err := validate(t, text); err != nil {
			t.Errorf("%s: %v: %s", name, err, said)
		}
		if strings.Contains(text, "kind: Deployment") {
			if against := restricted(t, templates(t, objects(t, text))[0]); against != "" {
				t.Errorf("%s: %s", name, against)
			}
		}
	}
	has(t, flat(read(t, examples+"sidecar/dcgm-exporter-of-the-node.yaml")),
		"name: dcgm-exporter-of-the-node namespace: gpu-operator", "internalTrafficPolicy: Local")
	has(t, read(t, examples+"sidecar/replayd.yaml"), "http://dcgm-exporter-of-the-node.gpu-operator:9400/metrics")
}

// The program accepts the arguments, and ends with a code that is not tried again, since the trace is not on this
// machine.
func TestCompareJob(t *testing.T) {
	text := built(t, "compare")
	c, _ := replayd(t, templates(t, objects(t, text))[0].Spec)
	const noTrace = "replayd: open /traces/trace.jsonl: no such file"
	said, err := run(t, "0", c.Args...)
	if err == nil || err.Error() != "exit status 2" || !strings.HasPrefix(said, noTrace) {
		t.Errorf("%q: want only the trace missed, got %v, %q", c.Args, err, said)
	}
	// https://kubernetes.io/docs/concepts/workloads/controllers/job/#pod-failure-policy
	has(t, flat(text), "image: registry.example.com/replayd:0.1.0 ", "restartPolicy: Never",
		"action: FailJob onExitCodes: containerName: replayd operator: In values: - 2 - 3 - 4 ",
		"action: Ignore onPodConditions: - status: \"True\" type: DisruptionTarget", "- --for=2h ",
		"activeDeadlineSeconds: 8400 ")
}
