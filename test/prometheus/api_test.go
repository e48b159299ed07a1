//go:build prometheus

package prometheus_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"replayd/test/outside"
)

// The scrape jobs, by the format of their scrapes.
const (
	both        = "both"        // protobuf, native histograms and classic ones
	native      = "native"      // protobuf, the default of Prometheus
	openMetrics = "openmetrics" // text with exemplars
	text        = "text"
	intruder    = "intruder" // a wrong password
)

const scrapes = `
global: {scrape_interval: 1s, scrape_timeout: 1s}
scrape_configs:
  - &replayd
    job_name: native
    scheme: https
    basic_auth: {username: USER, password_file: PASSWORD}
    tls_config: {ca_file: CA}
    static_configs: [{targets: ["ADDRESS"]}]
  - {<<: *replayd, job_name: both, always_scrape_classic_histograms: true}
  - {<<: *replayd, job_name: openmetrics, scrape_protocols: [OpenMetricsText1.0.0]}
  - {<<: *replayd, job_name: text, scrape_protocols: [PrometheusText0.0.4]}
  - {<<: *replayd, job_name: intruder, basic_auth: {username: USER, password_file: WRONG}}
`

// A prometheus is a running Prometheus that is queried for current values.
type prometheus struct{ outside.Prometheus }

func startPrometheus(t *testing.T, program string, s service) prometheus {
	t.Helper()
	dir := t.TempDir()
	config := strings.NewReplacer(
		"USER", user, "PASSWORD", outside.Write(t, dir, "password", password), "CA", s.ca, "WRONG", outside.Write(t, dir, "wrong", "wrong"), "ADDRESS", s.address,
	).Replace(scrapes)
	return prometheus{outside.StartPrometheus(t, program, dir, config, "--enable-feature=exemplar-storage")}
}

// ask returns the data of an answer of Prometheus' API.
func (p prometheus) ask(t *testing.T, path string, form url.Values, data any) {
	t.Helper()
	if err := p.Ask(t.Context(), path, form, data); err != nil {
		t.Fatalf("%v: %v", form, err)
	}
}

func (p prometheus) query(t *testing.T, promQL string) []outside.Series {
	t.Helper()
	result, err := p.Query(t.Context(), promQL, time.Time{})
	if err != nil {
		t.Fatalf("%s: %v", promQL, err)
	}
	return result
}

func (p prometheus) number(t *testing.T, promQL string) float64 {
	t.Helper()
	return p.Number(t, promQL, time.Time{})
}

// exemplars returns the exemplars of the last minutes.
func (p prometheus) exemplars(t *testing.T, selector string) (all []exemplar) {
	t.Helper()
	var data []struct{ Exemplars []exemplar }
	p.ask(t, "query_exemplars", url.Values{
		"query": {selector}, "start": {time.Now().Add(-5 * time.Minute).Format(time.RFC3339)},
		"end": {time.Now().Add(time.Minute).Format(time.RFC3339)},
	}, &data)
	for _, s := range data {
		all = append(all, s.Exemplars...)
	}
	return all
}

type exemplar struct {
	Labels map[string]string
	Value  string
}
