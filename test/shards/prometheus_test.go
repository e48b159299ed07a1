//go:build real

package shards_test

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"replayd/test/outside"
)

// The namespaces of the scraped processes: the four, and the one that replays all.
const (
	many = "many"
	one  = "one"
)

// A second here is a minute of the rules as they are shipped.
const scale = 60

const scrapes = `
global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}
rule_files: [RULES]
scrape_configs:
  - job_name: replayd
    always_scrape_classic_histograms: true
    static_configs:
`

// A prometheus is a running Prometheus.
type prometheus struct{ url string }

// startPrometheus starts one that scrapes all processes and evaluates the rules of the measurement, faster.
func startPrometheus(t *testing.T, dir string, replicas []*replica) prometheus {
	t.Helper()
	folder, err := filepath.Abs(repository + "/.cache/prometheus")
	if err != nil {
		t.Fatal(err)
	}
	outside.Install(t, folder)
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
		write(t, dir, "rules-"+name, string(text))
	}
	config := write(t, dir, "prometheus.yml", strings.ReplaceAll(scrapes, "RULES", filepath.Join(dir, "rules-*.yaml"))+targets.String())
	address := outside.Address(t)
	p := prometheus{"http://" + address}
	process := outside.Start(t, filepath.Join(dir, "prometheus.out"), filepath.Join(folder, "prometheus"), "--config.file="+config,
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address, "--log.level=warn",
		"--enable-feature=native-histograms", "--query.lookback-delta="+(5*time.Minute/scale).String())
	t.Cleanup(func() { process.Term(t, 30*time.Second) })
	process.Ready(t, http.DefaultClient, p.url+"/-/ready")
	return p
}

// A sample is one of the result of an instant query.
type sample struct {
	labels map[string]string
	value  float64
}

// query evaluates PromQL as of an instant. Every result must be a number.
func (p prometheus) query(t *testing.T, at time.Time, promQL string) (samples []sample) {
	t.Helper()
	query := url.Values{"query": {promQL}, "time": {strconv.FormatFloat(float64(at.UnixMilli())/1000, 'f', 3, 64)}}
	status, text, err := outside.Call(t.Context(), http.DefaultClient, http.MethodGet, p.url+"/api/v1/query?"+query.Encode())
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Status string
		Data   struct {
			Result []struct {
				Metric map[string]string
				Value  [2]any // time, and number as text
			}
		}
	}
	if err := json.Unmarshal(text, &answer); err != nil || answer.Status != "success" {
		t.Fatalf("%s: %d, %v, %s", promQL, status, err, text)
	}
	for _, r := range answer.Data.Result {
		v, err := strconv.ParseFloat(fmt.Sprint(r.Value[1]), 64)
		if err != nil {
			t.Fatalf("%s: want numbers, got %s", promQL, text)
		}
		samples = append(samples, sample{r.Metric, v})
	}
	return samples
}

// number is the value of a query that has one, NaN if it has another number of them.
func (p prometheus) number(t *testing.T, at time.Time, promQL string) float64 {
	t.Helper()
	if samples := p.query(t, at, promQL); len(samples) == 1 {
		return samples[0].value
	}
	return math.NaN()
}

// firing gives the alerts of a name.
func (p prometheus) firing(t *testing.T, alert string) (summaries []string) {
	t.Helper()
	status, text, err := outside.Call(t.Context(), http.DefaultClient, http.MethodGet, p.url+"/api/v1/alerts")
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Data struct {
			Alerts []struct {
				State               string
				Labels, Annotations map[string]string
			}
		}
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		t.Fatalf("%d, %v, %s", status, err, text)
	}
	for _, a := range answer.Data.Alerts {
		if a.State == "firing" && a.Labels["alertname"] == alert {
			summaries = append(summaries, a.Labels["namespace"]+": "+a.Annotations["summary"])
		}
	}
	return summaries
}
