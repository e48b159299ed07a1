package outside

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// PrometheusTool returns the path of a program that the script test/prometheus/install gets: prometheus, promtool,
// alertmanager or amtool. It is for tests in sibling folders. If the program is not available, it does as Install does.
func PrometheusTool(t *testing.T, name string) (path string) {
	t.Helper()
	folder, err := filepath.Abs("../../.cache/prometheus")
	if err != nil {
		t.Fatal(err)
	}
	install(t, "../prometheus/install", folder, name)
	return filepath.Join(folder, name)
}

// A Prometheus is a running Prometheus.
type Prometheus struct{ URL string }

// StartPrometheus starts a Prometheus with native histograms, a configuration and further flags. Its files are in dir.
// It ends with the test, and must end when it is asked to.
func StartPrometheus(t *testing.T, program, dir, config string, flags ...string) Prometheus {
	t.Helper()
	file := Write(t, dir, "prometheus.yml", config)
	address := Address(t)
	p := Prometheus{"http://" + address}
	process := Start(t, filepath.Join(dir, "prometheus.out"), program, append([]string{
		"--config.file=" + file, "--storage.tsdb.path=" + filepath.Join(dir, "data"), "--web.listen-address=" + address,
		"--log.level=warn", "--enable-feature=native-histograms",
	}, flags...)...)
	t.Cleanup(func() { process.Term(t) })
	process.Ready(t, http.DefaultClient, p.URL+"/-/ready")
	return p
}

// Ask reads the data of an answer of the API, for a path such as "rules".
func (p Prometheus) Ask(ctx context.Context, path string, form url.Values, data any) error {
	status, text, err := Call(ctx, http.DefaultClient, http.MethodGet, p.URL+"/api/v1/"+path+"?"+form.Encode())
	if err != nil {
		return err
	}
	answer := struct {
		Status, Error string
		Data          any
	}{Data: data}
	if err := json.Unmarshal(text, &answer); err != nil {
		return fmt.Errorf("%s: %d: %w: %.200s", path, status, err, text)
	}
	if answer.Status != "success" {
		return fmt.Errorf("%s: %d: %s", path, status, answer.Error)
	}
	return nil
}

// A Series is a series in the result of a query: an instant query
// gives a Value or a Histogram, a range query Values or Histograms.
type Series struct {
	Metric     map[string]string
	Value      Sample
	Values     []Sample
	Histogram  Sample
	Histograms []Sample
}

// A Sample is a time in seconds with a number as text or a native histogram; both are nil if there is none.
type Sample [2]any

// Number returns the number, or NaN if there is none.
func (s Sample) Number() float64 {
	v, err := strconv.ParseFloat(fmt.Sprint(s[1]), 64)
	if err != nil {
		return math.NaN()
	}
	return v
}

// Query evaluates PromQL at an instant, or now if it is zero. A scalar is a Series without labels.
func (p Prometheus) Query(ctx context.Context, promQL string, at time.Time) ([]Series, error) {
	form := url.Values{"query": {promQL}}
	if !at.IsZero() {
		form.Set("time", at.Format(time.RFC3339Nano))
	}
	var data struct{ Result json.RawMessage }
	if err := p.Ask(ctx, "query", form, &data); err != nil {
		return nil, err
	}
	var result []Series
	if json.Unmarshal(data.Result, &result) == nil {
		return result, nil
	}
	var scalar Sample // or a string
	if err := json.Unmarshal(data.Result, &scalar); err != nil {
		return nil, fmt.Errorf("%s: want a vector or a scalar, got %.200s", promQL, data.Result)
	}
	return []Series{{Value: scalar}}, nil
}

// Number returns the value of a query with exactly one. It is NaN for another number of values or a histogram.
func (p Prometheus) Number(t *testing.T, promQL string, at time.Time) float64 {
	t.Helper()
	result, err := p.Query(t.Context(), promQL, at)
	if err != nil {
		t.Fatalf("%s: %v", promQL, err)
	}
	if len(result) != 1 {
		return math.NaN()
	}
	return result[0].Value.Number()
}

// QueryRange evaluates PromQL at each step of a span.
func (p Prometheus) QueryRange(ctx context.Context, promQL string, from, to time.Time, step time.Duration) ([]Series, error) {
	var data struct{ Result []Series }
	err := p.Ask(ctx, "query_range", url.Values{
		"query": {promQL}, "start": {from.Format(time.RFC3339Nano)}, "end": {to.Format(time.RFC3339Nano)}, "step": {strconv.FormatFloat(step.Seconds(), 'f', -1, 64)},
	}, &data)
	return data.Result, err
}
