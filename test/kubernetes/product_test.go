//go:build real

package kubernetes_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// run runs the real binary for at most 20 s, as the pod with an index.
func run(t *testing.T, index string, args ...string) (said string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	c := exec.CommandContext(ctx, binary, args...)
	c.Env = append(os.Environ(), "JOB_COMPLETION_INDEX="+index)
	out, err := c.CombinedOutput()
	return string(out), err
}

// replayd accepts the configuration of every mode, and each shard knows its index.
func TestConfigurations(t *testing.T) {
	for _, mode := range []string{"deployment", "shards", "sidecar-example"} {
		for _, values := range [][]string{full(mode), plain(mode)} {
			all := objects(t, render(t, chart, values...))
			_, text := configured(t, all, templates(t, all)[0].Spec)
			file := write(t, "replayd.yaml", text)
			if said, err := run(t, "0", "check-config", "--no-files", file); err != nil {
				t.Errorf("%s: %v: %s\n%s", mode, err, said, text)
			}
			if said, err := run(t, "4", "check-config", "--no-files", file); (err != nil) != (mode == "shards") {
				t.Errorf("%s: want a fifth shard refused, and nobody else, got %v: %s", mode, err, said)
			}
		}
	}
}

// replayd accepts the arguments of its containers. Its only errors are about files missing on this machine.
func TestArguments(t *testing.T) {
	const noFile = "open /etc/replayd/config/replayd.yaml: no such file or directory"
	for _, mode := range modes {
		for _, values := range [][]string{full(mode), plain(mode)} {
			pod := templates(t, objects(t, render(t, chart, values...)))[0].Spec
			c, _ := replayd(t, pod)
			want := noFile
			if mode == "job" {
				want = "replayd: --shard: auto: want a shard index < " + map[bool]string{true: "4", false: "2"}[values[0] == "-f"] + ", got 99 (from JOB_COMPLETION_INDEX)"
			}
			if said, err := run(t, "99", c.Args...); err == nil || !strings.Contains(said, want) || strings.Count(said, "\n") != 1 {
				t.Errorf("%s %q: want %q, got %v: %q", mode, c.Args, want, err, said)
			}
		}
	}
	// The example's engine.
	pod := templates(t, objects(t, render(t, chart, plain("sidecar-example")...)))[0].Spec
	if said, err := run(t, "0", append(pod.Containers[0].Args, "--slots=0")...); err == nil || said != "replayd: --slots: want an integer from 1 to 65536, got 0\n" {
		t.Errorf("%q: got %v: %q", pod.Containers[0].Args, err, said)
	}
}

// A shard of the Job writes the records of its own rows to the claim, in a file that no other pod has written. A
// release that is installed again has the same revision, and records are appended to an existing file.
func TestJobIsARun(t *testing.T) {
	pod := templates(t, objects(t, render(t, chart, plain("job")...)))[0].Spec
	c, _ := replayd(t, pod)
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "records"), 0o700); err != nil {
		t.Fatal(err)
	}
	const name = "canary-replayd-1-1-x7k2p"
	args, fromPod := []string{}, ""
	for _, e := range c.Env {
		if e.ValueFrom != nil && e.ValueFrom.FieldRef != nil && e.ValueFrom.FieldRef.FieldPath == "metadata.name" {
			fromPod = "$(" + e.Name + ")"
		}
	}
	if fromPod == "" {
		t.Fatalf("want the pod's name in the environment, got %v", c.Env)
	}
	for _, a := range c.Args { // as the kubelet and the volumes do; without a server, so that it ends at once
		a = strings.NewReplacer(fromPod, name, "/records/", dir+"/records/", "http://vllm:8000", "http://127.0.0.1:1",
			"/traces/", repository+"/internal/synth/", "--wait-ready=15m", "--wait-ready=0", "--hold=30s", "--hold=0", jobStart, "next:1s", ":9797", "127.0.0.1:0").Replace(a)
		args = append(args, a)
	}
	said, err := run(t, "1", append(args, "--speed=100")...)
	if err == nil || !strings.Contains(said, "no request ended ok") {
		t.Fatalf("want a run without a server, got %v: %s", err, said)
	}
	m := regexp.MustCompile(`(?m)^expected +(\d+)$`).FindStringSubmatch(said)
	if m == nil {
		t.Fatalf("want a report, got %s", said)
	}
	expected, _ := strconv.Atoi(m[1])
	rows := strings.Count(read(t, repository+"/internal/synth/sample.jsonl"), "\n")
	if expected <= rows/4 || expected >= rows*3/4 {
		t.Errorf("want about half of %d rows, got %d", rows, expected)
	}
	if records := read(t, dir+"/records/"+name+".jsonl"); !strings.Contains(records, `"id":"canary/0/`) {
		t.Errorf("want records of the rows that were sent, got %d bytes", len(records))
	}
}

// The chart has all rules of alerts/, as they are or with runbookURL in each alert, and promtool accepts them as they are rendered.
func TestRules(t *testing.T) {
	rulesAreRendered(t, "")
	rulesAreRendered(t, "https://wiki.example/replayd")
}

func rulesAreRendered(t *testing.T, runbookURL string) {
	t.Helper()
	promtool := tool(t, "../prometheus/install", "prometheus", "promtool")
	all := objects(t, render(t, chart, append(full("deployment"), "--set", "prometheusRule.runbookURL="+runbookURL)...))
	paths, err := filepath.Glob(repository + "/alerts/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		rule := one[struct{ Spec map[string]any }](t, all, "PrometheusRule", "-"+strings.TrimSuffix(filepath.Base(path), ".yaml"))
		text, err := yaml.Marshal(rule.Spec)
		if err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), promtool, "check", "rules", "--lint=all", "--lint-fatal", write(t, "rules.yaml", string(text))).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v: %s", path, err, out)
		}
		var want map[string]any
		decode(t, []byte(read(t, path)), &want)
		if runbookURL != "" {
			linkAll(want, runbookURL)
		}
		if !reflect.DeepEqual(rule.Spec, want) {
			t.Errorf("%s: what is rendered with runbookURL %q differs", path, runbookURL)
		}
	}
	if got := count(all, "PrometheusRule"); len(paths) < 2 || got != len(paths) {
		t.Errorf("want %d PrometheusRules, got %d", len(paths), got)
	}
}

// linkAll gives each alert of a file of rules its link to the runbook.
func linkAll(file map[string]any, runbookURL string) {
	for _, g := range file["groups"].([]any) {
		for _, r := range g.(map[string]any)["rules"].([]any) {
			rule := r.(map[string]any)
			if alert, ok := rule["alert"].(string); ok {
				rule["annotations"].(map[string]any)["runbook_url"] = runbookURL + "#" + strings.ToLower(alert)
			}
		}
	}
}

// Disabled alerts are gone, whatever their severity and the number of their rules, and everything else is unchanged.
func TestDisabledAlerts(t *testing.T) {
	names := func(values ...string) (alerts map[string]int, records int) {
		alerts = map[string]int{}
		for _, o := range objects(t, render(t, chart, append(full("deployment"), values...)...)) {
			if o.Kind != "PrometheusRule" {
				continue
			}
			if said, err := validate(t, string(o.text)); err != nil {
				t.Errorf("%s: %v: %s", o.Name, err, said)
			}
			var rule struct {
				Spec struct {
					Groups []struct {
						Rules []struct{ Alert, Record, Expr string }
					}
				}
			}
			decode(t, o.text, &rule)
			for _, g := range rule.Spec.Groups {
				for _, r := range g.Rules {
					if r.Expr == "" {
						t.Errorf("%s: want an expression of %s", o.Name, r.Alert+r.Record)
					}
					if r.Alert != "" {
						alerts[r.Alert]++
					} else {
						records++
					}
				}
			}
		}
		return alerts, records
	}
	want, records := names()
	if want["ReplaydGPUXid"] < 2 || want["ReplaydOverload"] != 1 {
		t.Fatalf("want two rules and one, got %v", want)
	}
	delete(want, "ReplaydGPUXid")
	delete(want, "ReplaydOverload")
	got, left := names("--set", "prometheusRule.disabled={ReplaydOverload,ReplaydGPUXid}")
	if !reflect.DeepEqual(got, want) || left != records {
		t.Errorf("want %v and %d recording rules, got %v and %d", want, records, got, left)
	}
}

// The chart has all dashboards of dashboards/, with the label of Grafana's sidecar.
func TestDashboards(t *testing.T) {
	all := objects(t, render(t, chart, full("deployment")...))
	paths, err := filepath.Glob(repository + "/dashboards/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		m := one[corev1.ConfigMap](t, all, "ConfigMap", "-dashboard-"+strings.TrimSuffix(filepath.Base(path), ".json"))
		got := m.Data["replayd-"+filepath.Base(path)]
		if strings.TrimSpace(got) != strings.TrimSpace(read(t, path)) || !json.Valid([]byte(got)) || m.Labels["grafana_dashboard"] != "1" || m.Namespace != "monitoring" {
			t.Errorf("%s: want it whole, labeled, where Grafana looks, got %v in %s, %d bytes", path, m.Labels, m.Namespace, len(got))
		}
	}
	n := 0
	for _, o := range all {
		if strings.Contains(o.Name, "-dashboard-") {
			n++
		}
	}
	if len(paths) == 0 || n != len(paths) {
		t.Errorf("want %d dashboards, got %d", len(paths), n)
	}
}
