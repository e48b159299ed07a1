//go:build monitors

package monitors_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"replayd/test/outside"
)

// A target whose own label is called workload takes no workload's name away, with the configuration that deploy ships. Without its
// honor_labels the rules add up two workloads.
func TestTargetLabel(t *testing.T) {
	shipped, err := os.ReadFile(repository + "/deploy/prometheus.yml")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		honor string
		want  []string
	}{
		"as shipped":           {"honor_labels: true", []string{"chat", "probe"}},
		"without honor_labels": {"honor_labels: false", []string{"canary-deploy"}},
	} {
		t.Run(name, func(t *testing.T) {
			var requests atomic.Int64
			page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/plain; version=0.0.4")
				fmt.Fprintln(w, "# TYPE replayd_requests_expected_total counter")
				for _, workload := range []string{"chat", "probe"} {
					fmt.Fprintf(w, "replayd_requests_expected_total{workload=%q,target=\"vllm\",model=\"m\"} %d\n", workload, requests.Add(1))
				}
			}))
			t.Cleanup(page.Close)
			dir := t.TempDir()
			config := string(shipped)
			for _, change := range [][2]string{
				{"scrape_interval: 15s", "scrape_interval: 250ms\n  scrape_timeout: 250ms"},
				{"evaluation_interval: 15s", "evaluation_interval: 500ms"},
				{"../alerts/*.yaml", "'" + fastRules(t, dir) + "'"},
				{`["alertmanager:9093"]`, "[]"},
				{"honor_labels: true", c.honor},
				{`["replayd:9797"]`, fmt.Sprintf("[%q]", strings.TrimPrefix(page.URL, "http://"))},
				{"# labels: {cluster: east}", "labels: {cluster: east, workload: canary-deploy}"},
			} {
				if strings.Count(config, change[0]) != 1 {
					t.Fatalf("deploy/prometheus.yml: want %q once", change[0])
				}
				config = strings.Replace(config, change[0], change[1], 1)
			}
			p := outside.StartPrometheus(t, outside.PrometheusTool(t, "prometheus"), dir, config)
			outside.Until(t, func() error {
				series, err := p.Query(t.Context(), "workload:replayd_requests_expected:rate5m > 0", time.Time{})
				var got []string
				for _, s := range series {
					got = append(got, s.Metric["workload"])
				}
				slices.Sort(got)
				if err == nil && !slices.Equal(got, c.want) {
					err = fmt.Errorf("want the rate of %q, got %q", c.want, got)
				}
				return err
			})
		})
	}
}
