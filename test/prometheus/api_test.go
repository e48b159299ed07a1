//go:build prometheus

package prometheus_test

import (
	"context"
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

// The scrape jobs, by what they show.
const (
	both        = "both"        // protobuf, native histograms and classic ones
	native      = "native"      // protobuf, as a Prometheus does it by default
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

// A prometheus is a running Prometheus.
type prometheus struct{ url string }

func startPrometheus(t *testing.T, program string, s service) prometheus {
	t.Helper()
	dir := t.TempDir()
	config := write(t, dir, "prometheus.yml", strings.NewReplacer(
		"USER", user, "PASSWORD", write(t, dir, "password", password), "CA", s.ca, "WRONG", write(t, dir, "wrong", "wrong"), "ADDRESS", s.address,
	).Replace(scrapes))
	address := outside.Address(t)
	p := prometheus{"http://" + address}
	start(t, filepath.Join(dir, "prometheus.out"), http.DefaultClient, p.url+"/-/ready",
		program, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+address, "--enable-feature=native-histograms,exemplar-storage", "--log.level=warn")
	return p
}

// ask gives the data of an answer of Prometheus' API.
func (p prometheus) ask(t *testing.T, path string, query url.Values, data any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	status, text, err := outside.Call(ctx, http.DefaultClient, http.MethodGet, p.url+"/api/v1/"+path+"?"+query.Encode())
	if err != nil {
		t.Fatal(err)
	}
	answer := struct {
		Status, Error string
		Data          any
	}{Data: data}
	if err := json.Unmarshal(text, &answer); err != nil || answer.Status != "success" {
		t.Fatalf("%s %v: %d, %v, %s", path, query, status, err, text)
	}
}

// A series is one of the result of an instant query.
type series struct {
	Metric    map[string]string
	Value     [2]any // time and number as text
	Histogram *[2]json.RawMessage
}

func (p prometheus) query(t *testing.T, promQL string) []series {
	t.Helper()
	var data struct{ Result []series }
	p.ask(t, "query", url.Values{"query": {promQL}}, &data)
	return data.Result
}

// number is the value of a query that has one series, NaN if it has another number of them.
func (p prometheus) number(t *testing.T, promQL string) float64 {
	t.Helper()
	result := p.query(t, promQL)
	if len(result) != 1 || result[0].Histogram != nil {
		return math.NaN()
	}
	v, err := strconv.ParseFloat(fmt.Sprint(result[0].Value[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// exemplars gives those of the last minutes.
func (p prometheus) exemplars(t *testing.T, selector string) (all []exemplar) {
	t.Helper()
	var data []struct{ Exemplars []exemplar }
	p.ask(t, "query_exemplars", url.Values{
		"query": {selector}, "start": {strconv.FormatInt(time.Now().Add(-5*time.Minute).Unix(), 10)},
		"end": {strconv.FormatInt(time.Now().Add(time.Minute).Unix(), 10)},
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
