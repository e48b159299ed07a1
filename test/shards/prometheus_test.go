//go:build real

package shards_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"replayd/test/outside"
)

// The namespaces of the scraped processes: the four shards, and the process that replays all rows.
const (
	many = "many"
	one  = "one"
)

// A second here is a minute of the shipped rules.
const scale = 60

const scrapes = `
global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}
rule_files: [RULES]
scrape_configs:
  - job_name: replayd
    always_scrape_classic_histograms: true
    static_configs:
`

// startPrometheus starts a Prometheus that scrapes all processes
// and evaluates the rules of the measurement at the scaled speed.
func startPrometheus(t *testing.T, dir string, replicas []*replica) outside.Prometheus {
	t.Helper()
	program := outside.PrometheusTool(t, "prometheus")
	var targets strings.Builder
	for i, r := range replicas {
		namespace := many
		if i == shards {
			namespace = one
		}
		fmt.Fprintf(&targets, "      - {targets: [%q], labels: {namespace: %s, pod: %s}}\n", r.address, namespace, r.pod.name)
	}
	for _, name := range []string{"workloads.yaml", "measurement.yaml"} {
		text, err := outside.ScaleRules(repository+"/alerts/"+name, scale)
		if err != nil {
			t.Fatal(err)
		}
		outside.Write(t, dir, "rules-"+name, string(text))
	}
	return outside.StartPrometheus(t, program, dir, strings.ReplaceAll(scrapes, "RULES", filepath.Join(dir, "rules-*.yaml"))+targets.String(),
		"--query.lookback-delta="+(5*time.Minute/scale).String())
}

// firing returns the summaries of the firing alerts with a name.
func (w *world) firing(t *testing.T, alert string) (summaries []string) {
	t.Helper()
	var data struct {
		Alerts []struct {
			State               string
			Labels, Annotations map[string]string
		}
	}
	if err := w.prom.Ask(t.Context(), "alerts", nil, &data); err != nil {
		t.Fatal(err)
	}
	for _, a := range data.Alerts {
		if a.State == "firing" && a.Labels["alertname"] == alert {
			summaries = append(summaries, a.Labels["namespace"]+": "+a.Annotations["summary"])
		}
	}
	return summaries
}
