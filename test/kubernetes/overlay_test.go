//go:build real

package kubernetes_test

import (
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

const overlay = repository + "/deploy/kubernetes/sidecar"

// The example as `kubectl apply -k` sends it.
func TestOverlay(t *testing.T) {
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), overlay)
	if err != nil {
		t.Fatal(err)
	}
	text, err := made.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	hold(t, string(text))
	all := objects(t, string(text))
	pod := templates(t, all)[0].Spec
	c, config := configured(t, all, pod)
	sidecar(t, pod, c)
	if said, err := run(t, "0", "check-config", "--no-files", write(t, "replayd.yaml", config)); err != nil {
		t.Errorf("%v: %s", err, said)
	}
	container, _ := replayd(t, pod)
	if said, _ := run(t, "0", container.Args...); !strings.HasSuffix(said, "replayd.yaml: no such file or directory\n") {
		t.Errorf("%q: got %q", container.Args, said)
	}

	trace := one[corev1.ConfigMap](t, all, "ConfigMap", "replayd-trace").Data["trace.jsonl"]
	if len(trace) < 1000 || !strings.HasPrefix(read(t, repository+"/internal/synth/sample.jsonl"), trace) {
		t.Errorf("want the beginning of the sample, got %d bytes", len(trace))
	}
	if want := "/traces/trace.jsonl"; c.Workloads[0].Trace.Path != want {
		t.Errorf("want %s, got %s", want, c.Workloads[0].Trace.Path)
	}
}

// The optional files of the example, and the server alone.
func TestOverlayOptions(t *testing.T) {
	for _, name := range []string{"podmonitor.yaml", "dcgm-exporter-of-the-node.yaml", "../base/vllm.yaml"} {
		text := read(t, filepath.Join(overlay, name))
		if said, err := validate(t, text); err != nil {
			t.Errorf("%s: %v: %s", name, err, said)
		}
		if strings.Contains(text, "kind: Deployment") {
			for _, pod := range templates(t, objects(t, text)) {
				if against := restricted(t, pod); against != "" {
					t.Errorf("%s: %s", name, against)
				}
			}
		}
	}
	var s corev1.Service
	decode(t, []byte(read(t, overlay+"/dcgm-exporter-of-the-node.yaml")), &s)
	if *s.Spec.InternalTrafficPolicy != corev1.ServiceInternalTrafficPolicyLocal || !strings.Contains(read(t, overlay+"/replayd.yaml"), "http://"+s.Name+"."+s.Namespace+":9400/metrics") {
		t.Errorf("want the Service that replayd.yaml names, got %v", s)
	}
}
