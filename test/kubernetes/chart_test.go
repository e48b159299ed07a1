//go:build real

package kubernetes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

// A configuration holds the parts of replayd.yaml that these tests check.
type configuration struct {
	Drain   string
	Targets []struct {
		Name, URL string
	}
	Workloads []struct {
		Name  string
		Trace struct{ Path string }
		Shard *struct {
			Index string
			Of    int
		}
	}
	GPUs []struct {
		Exporter string `json:"dcgm_exporter"`
	}
}

// configured reads the ConfigMap that a pod mounts, at the path of --config.
func configured(t *testing.T, all []object, pod corev1.PodSpec) (c configuration, text string) {
	t.Helper()
	name := ""
	for _, v := range pod.Volumes {
		if v.Name == "config" || v.Name == "replayd" {
			name = v.ConfigMap.Name
		}
	}
	container, _ := replayd(t, pod)
	if !slices.ContainsFunc(container.VolumeMounts, func(m corev1.VolumeMount) bool {
		return (m.Name == "config" || m.Name == "replayd") && m.MountPath == "/etc/replayd/config" && m.SubPath == ""
	}) || !slices.Contains(container.Args, "--config=/etc/replayd/config/replayd.yaml") || !slices.Contains(container.Args, "--config.watch") {
		t.Errorf("want the configuration as a folder that is watched, got %v, %v", container.Args, container.VolumeMounts)
	}
	m := one[corev1.ConfigMap](t, all, "ConfigMap", name)
	text = m.Data["replayd.yaml"]
	if err := yaml.Unmarshal([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	return c, text
}

// outlasts checks that the grace period is longer than the drain.
func outlasts(t *testing.T, pod corev1.PodSpec, drain string) {
	t.Helper()
	d, err := time.ParseDuration(drain)
	if err != nil {
		t.Fatal(err)
	}
	if grace := time.Duration(*pod.TerminationGracePeriodSeconds) * time.Second; grace <= d {
		t.Errorf("terminationGracePeriodSeconds: want more than the drain, %v, got %v", d, grace)
	}
}

func TestDeployment(t *testing.T) {
	for _, values := range [][]string{full("deployment"), plain("deployment")} {
		all := objects(t, render(t, chart, values...))
		d := one[appsv1.Deployment](t, all, "Deployment", "")
		if d.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType || *d.Spec.Replicas != 1 {
			t.Errorf("want one replica, recreated: two would double the load, got %v, %d", d.Spec.Strategy, *d.Spec.Replicas)
		}
		c, _ := configured(t, all, d.Spec.Template.Spec)
		outlasts(t, d.Spec.Template.Spec, c.Drain)
		for _, w := range c.Workloads {
			if w.Shard != nil || !strings.HasPrefix(w.Trace.Path, "/traces/") {
				t.Errorf("%s: want a trace and no shard, got %+v", w.Name, w)
			}
		}
	}
	all := objects(t, render(t, chart, append(plain("deployment"), "--set", "config.drain=1h1m1.5s")...))
	if got := *one[appsv1.Deployment](t, all, "Deployment", "").Spec.Template.Spec.TerminationGracePeriodSeconds; got != 3600+60+2+15 {
		t.Errorf("want the drain, rounded up, and 15 s, got %d", got)
	}
}

// A first installation replays the sample that the chart includes.
func TestSample(t *testing.T) {
	want := read(t, repository+"/internal/synth/sample.jsonl")
	for _, mode := range modes {
		all := objects(t, render(t, chart, plain(mode)...))
		if got := one[corev1.ConfigMap](t, all, "ConfigMap", "-sample").Data["sample.jsonl"]; strings.TrimSpace(got) != strings.TrimSpace(want) {
			t.Errorf("%s: want the sample, got %d bytes", mode, len(got))
		}
		for _, o := range objects(t, render(t, chart, full(mode)...)) {
			if strings.HasSuffix(o.Name, "-sample") && mode != "sidecar-example" {
				t.Errorf("%s: a sample that nobody wants", mode)
			}
		}
	}
}

func TestShards(t *testing.T) {
	all := objects(t, render(t, chart, full("shards")...))
	s := one[appsv1.StatefulSet](t, all, "StatefulSet", "")
	if *s.Spec.Replicas != 4 || s.Spec.PodManagementPolicy != appsv1.ParallelPodManagement {
		t.Errorf("want 4 replicas, all at once, got %d, %v", *s.Spec.Replicas, s.Spec.PodManagementPolicy)
	}
	service := one[corev1.Service](t, all, "Service", s.Spec.ServiceName)
	if service.Spec.ClusterIP != corev1.ClusterIPNone {
		t.Errorf("want a headless Service, got %q", service.Spec.ClusterIP)
	}
	c, _ := configured(t, all, s.Spec.Template.Spec)
	outlasts(t, s.Spec.Template.Spec, c.Drain)
	if len(c.Workloads) != 2 {
		t.Errorf("want both workloads, got %v", c.Workloads)
	}
	for _, w := range c.Workloads {
		if w.Shard == nil || w.Shard.Index != "auto" || w.Shard.Of != int(*s.Spec.Replicas) {
			t.Errorf("%s: want shard {index: auto, of: 4}, got %+v", w.Name, w.Shard)
		}
	}
	if c.Workloads[0].Trace.Path != "/traces/peak.jsonl.gz" || c.Workloads[1].Trace.Path != "/traces/tail.jsonl" {
		t.Errorf("want the trace where there is none, got %+v", c.Workloads)
	}
	container, _ := replayd(t, s.Spec.Template.Spec)
	if !slices.ContainsFunc(container.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == "records" && m.SubPathExpr == "$(POD_NAME)" }) {
		t.Errorf("want a folder of records for each shard, got %v", container.VolumeMounts)
	}
	if b := one[policyv1.PodDisruptionBudget](t, all, "PodDisruptionBudget", ""); b.Spec.MaxUnavailable.IntValue() != 1 {
		t.Errorf("want one shard at a time, got %v", b.Spec.MaxUnavailable)
	}
}

func TestJob(t *testing.T) {
	all := objects(t, render(t, chart, full("job")...))
	j := one[batchv1.Job](t, all, "Job", "")
	if *j.Spec.CompletionMode != batchv1.IndexedCompletion || *j.Spec.Completions != 4 || *j.Spec.Parallelism != 4 {
		t.Errorf("want an indexed Job of 4 at once, got %s, %d, %d", *j.Spec.CompletionMode, *j.Spec.Completions, *j.Spec.Parallelism)
	}
	if *j.Spec.BackoffLimitPerIndex != 0 || j.Spec.BackoffLimit != nil || j.Spec.Template.Spec.RestartPolicy != corev1.RestartPolicyNever {
		t.Error("want no pod started again, and none ended for another's sake: a limit of 0 by index, and none for the Job")
	}
	if *j.Spec.TTLSecondsAfterFinished != 86400 {
		t.Errorf("want it gone after a day, got %d s", *j.Spec.TTLSecondsAfterFinished)
	}
	outlasts(t, j.Spec.Template.Spec, "30s") // of `replayd run`
	if count(all, "ConfigMap") != 0 {
		t.Error("want no configuration in a file")
	}
	if claim := one[corev1.PersistentVolumeClaim](t, all, "PersistentVolumeClaim", "-records"); claim.Annotations["helm.sh/resource-policy"] != "keep" {
		t.Errorf("want records that outlive the release, got %v", claim.Annotations)
	}
	if b := one[policyv1.PodDisruptionBudget](t, all, "PodDisruptionBudget", ""); b.Spec.MinAvailable.IntValue() != 4 || b.Spec.MaxUnavailable != nil {
		t.Errorf("want all shards, got %v", b.Spec)
	}
	// The host name of a pod is the name of the Job and an index, at most 63 characters.
	all = objects(t, render(t, chart, append(plain("job"), "--set", "fullnameOverride="+strings.Repeat("x", 70))...))
	if name := one[batchv1.Job](t, all, "Job", "").Name; len(fmt.Sprint(name, "-", 999)) > 63 {
		t.Errorf("want room for an index, got %s", name)
	}
}

func TestSidecar(t *testing.T) {
	all := objects(t, render(t, chart, full("sidecar-example")...))
	pod := templates(t, all)[0].Spec
	c, _ := configured(t, all, pod)
	sidecar(t, pod, c)
	if len(c.GPUs) != 1 || c.GPUs[0].Exporter != "http://canary-replayd-dcgm.monitoring:9400/metrics" {
		t.Errorf("want the Service of the chart, got %+v", c.GPUs)
	}
	for engine, values := range map[string][]string{"engine": full("sidecar-example"), "vllm": append(plain("sidecar-example"), "--set-json", `sidecarExample.engine={"name":"vllm","image":"vllm"}`)} {
		p := templates(t, objects(t, render(t, chart, values...)))[0]
		if got := p.Annotations["kubectl.kubernetes.io/default-container"]; got != engine || p.Spec.Containers[0].Name != engine {
			t.Errorf("want kubectl to look into %s, got %q of %s", engine, got, p.Spec.Containers[0].Name)
		}
	}
	s := one[corev1.Service](t, all, "Service", "-dcgm")
	if *s.Spec.InternalTrafficPolicy != corev1.ServiceInternalTrafficPolicyLocal || s.Namespace != "monitoring" {
		t.Errorf("want the exporter of the node, where it is, got %v in %s", s.Spec, s.Namespace)
	}
}

// sidecar checks replayd in a pod whose server has users.
func sidecar(t *testing.T, pod corev1.PodSpec, c configuration) {
	t.Helper()
	outlasts(t, pod, c.Drain)
	container, first := replayd(t, pod)
	if !first || container.RestartPolicy == nil || *container.RestartPolicy != corev1.ContainerRestartPolicyAlways {
		t.Errorf("want a native sidecar: restartPolicy Always, and an init container, which is %v", first)
	}
	if container.StartupProbe != nil {
		t.Error("startupProbe: want none: the server would not start while replayd cannot")
	}
	if container.LivenessProbe == nil || container.ReadinessProbe == nil {
		t.Error("want a livenessProbe and a readinessProbe")
	}
	if len(c.Targets) != 1 || c.Targets[0].URL != "http://127.0.0.1:8000" {
		t.Errorf("want the server of the pod, got %v", c.Targets)
	}
	for _, engine := range pod.Containers {
		for _, p := range engine.Ports {
			if p.ContainerPort == container.Ports[0].ContainerPort {
				t.Errorf("port %d is %s's and replayd's", p.ContainerPort, engine.Name)
			}
		}
	}
}
