//go:build real

package kubernetes_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
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

// accepted runs check-config as the pod with an index.
func accepted(t *testing.T, index, config string) {
	t.Helper()
	if said, err := run(t, index, "check-config", "--no-files", write(t, "replayd.yaml", config)); err != nil {
		t.Errorf("%v: %s\n%s", err, said, config)
	}
}

// configMap returns a file of a ConfigMap.
func configMap(t *testing.T, all []object, name, file string) string {
	t.Helper()
	return one[corev1.ConfigMap](t, all, "ConfigMap", name).Data[file]
}

// replayd accepts the configuration and the arguments of every mode. Its only errors are about files missing on this
// machine, and about a shard too many.
func TestConfigurations(t *testing.T) {
	const noFile = "open /etc/replayd/config/replayd.yaml: no such file or directory"
	for _, mode := range modes {
		for _, values := range [][]string{full(mode), plain(mode)} {
			all := objects(t, render(t, chart, values...))
			pod := templates(t, all)[0].Spec
			want := noFile
			if mode == "job" {
				want = "replayd: --shard: auto: want a shard index < " + map[bool]string{true: "4", false: "2"}[values[0] == "-f"] + ", got 99 (from JOB_COMPLETION_INDEX)"
			} else {
				text := configMap(t, all, "canary-replayd", "replayd.yaml")
				accepted(t, "0", text)
				said, err := run(t, "4", "check-config", "--no-files", write(t, "replayd.yaml", text))
				if (err != nil) != (mode == "shards") {
					t.Errorf("%s: want a fifth shard refused, and nobody else, got %v: %s", mode, err, said)
				}
			}
			c, _ := replayd(t, pod)
			for i := range c.Args {
				c.Args[i] = strings.ReplaceAll(c.Args[i], "$(POD_NAME)", "canary-replayd-1-99-x") // as the kubelet does
			}
			if said, err := run(t, "99", c.Args...); err == nil || !strings.Contains(said, want) || strings.Count(said, "\n") != 1 {
				t.Errorf("%s %q: want %q, got %v: %q", mode, c.Args, want, err, said)
			}
			if mode == "sidecar-example" { // the engine too
				if said, err := run(t, "0", append(pod.Containers[0].Args, "--slots=0")...); err == nil ||
					said != "replayd: --slots: want an integer from 1 to 65536, got 0\n" {
					t.Errorf("%q: got %v: %q", pod.Containers[0].Args, err, said)
				}
			}
		}
	}
}

// The chart has all rules, dashboards and the sample as they are in the repository. With runbookURL each alert has a
// link, and the alerts that are disabled are gone, whatever the number of their rules.
func TestFiles(t *testing.T) {
	all := objects(t, render(t, chart, append(full("deployment"), "--set", "prometheusRule.runbookURL=")...))
	changed := objects(t, render(t, chart, append(full("deployment"),
		"--set", "prometheusRule.runbookURL=https://wiki.example/replayd",
		"--set", "prometheusRule.dashboardsURL=https://grafana.example",
		"--set", "prometheusRule.disabled={ReplaydOverload,ReplaydGPUXid}")...))
	paths, err := filepath.Glob(repository + "/alerts/*.yaml")
	if err != nil || len(paths) == 0 || count(all, "PrometheusRule") != len(paths) {
		t.Fatalf("want the rules of %v, got %d, %v", paths, count(all, "PrometheusRule"), err)
	}
	disabled := 0
	for _, path := range paths {
		suffix := "-" + strings.TrimSuffix(filepath.Base(path), ".yaml")
		var want map[string]any
		decode(t, []byte(read(t, path)), &want)
		if got := one[struct{ Spec map[string]any }](t, all, "PrometheusRule", suffix).Spec; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: what is rendered differs", path)
		}
		for _, g := range want["groups"].([]any) {
			group := g.(map[string]any)
			group["rules"] = slices.DeleteFunc(group["rules"].([]any), func(r any) bool {
				rule := r.(map[string]any)
				alert, _ := rule["alert"].(string)
				if alert != "" {
					texts := rule["annotations"].(map[string]any)
					texts["runbook_url"] = "https://wiki.example/replayd#" + strings.ToLower(alert)
					_, link, found := strings.Cut(texts["dashboard"].(string), `label "dashboards_url" }}`)
					if !found {
						t.Errorf("%s: want a link below the address of the dashboards", alert)
					}
					texts["dashboard"] = `{{ with "https://grafana.example" }}{{ . }}` + link
				}
				isOff := alert == "ReplaydOverload" || alert == "ReplaydGPUXid"
				if isOff {
					disabled++
				}
				return isOff
			})
		}
		got := one[struct{ Spec map[string]any }](t, changed, "PrometheusRule", suffix).Spec
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: with links and without two alerts it differs", path)
		}
	}
	if disabled < 3 {
		t.Errorf("want an alert of two rules disabled, got %d rules", disabled)
	}
	boards, err := filepath.Glob(repository + "/dashboards/*.json")
	if err != nil || len(boards) == 0 {
		t.Fatal(boards, err)
	}
	for _, path := range boards {
		m := one[corev1.ConfigMap](t, all, "ConfigMap", "-dashboard-"+strings.TrimSuffix(filepath.Base(path), ".json"))
		if strings.TrimSpace(m.Data["replayd-"+filepath.Base(path)]) != strings.TrimSpace(read(t, path)) ||
			m.Labels["grafana_dashboard"] != "1" || m.Namespace != "monitoring" {
			t.Errorf("%s: want it whole, labeled, where Grafana looks, got %v in %s", path, m.Labels, m.Namespace)
		}
	}
	sample := configMap(t, objects(t, render(t, chart, plain("shards")...)), "-sample", "sample.jsonl")
	if strings.TrimSpace(sample) != strings.TrimSpace(read(t, repository+"/internal/synth/sample.jsonl")) {
		t.Errorf("want the sample, got %d bytes", len(sample))
	}
}
