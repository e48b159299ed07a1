//go:build monitors

package monitors_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/snappy"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/prompb"
	"github.com/prometheus/prometheus/promql/parser"

	"replayd/test/outside"
)

// began is the instant at which the tests begin.
var began = time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)

const (
	step   = time.Minute    // between two samples
	before = 60             // samples before the tests begin: the longest window of a rate
	steps  = before + 25*60 // samples in all
)

// counters matches the names of series that only grow.
var counters = regexp.MustCompile(`_(total|sum|count|bucket)$`)

// pages have the series that replayd shows, also those that no test of the rules has.
var pages = []string{
	"metrics/testdata/metrics.golden", "comparison/testdata/comparisons.golden", "gpu/testdata/metrics.golden", "scrape/testdata/collector.golden",
}

// loaded returns the series of all tests of the rules, and of a page, a sample a minute. Each test is a cluster of its own. A series goes
// on after the test's end, and a gap begins with a stale marker, as after a scrape without it.
//
// Counters grow evenly, to the value that they have at the test's end. Only of those have the two servers the same rates: Prometheus
// extrapolates from the samples in the window to its borders, VictoriaMetrics takes the sample before the window
// (https://docs.victoriametrics.com/victoriametrics/metricsql/, "increase").
func loaded(t *testing.T) (all []prompb.TimeSeries) {
	t.Helper()
	clusters := map[string][]string{}
	clusters["page"] = []string{"up 1"}
	for _, path := range pages {
		text, err := os.ReadFile(repository + "/internal/" + path)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "replayd_") {
				clusters["page"] = append(clusters["page"], line)
			}
		}
	}
	stored, err := outside.Stored(repository + "/docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, of := range stored {
		if strings.HasSuffix(name, "_bucket") { // one is no histogram
			continue
		}
		var pairs []string
		for _, label := range of {
			pairs = append(pairs, label+`="1"`)
		}
		clusters["stored"] = append(clusters["stored"], fmt.Sprintf("%s{%s} 1", name, strings.Join(pairs, ",")))
	}
	slices.Sort(clusters["stored"])
	paths, err := filepath.Glob(repository + "/alerts/tests/*_test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		for i, one := range readFile(t, path).Tests {
			for _, in := range one.Input {
				name := fmt.Sprint(filepath.Base(path), i)
				clusters[name] = append(clusters[name], in.Series+" "+in.Values)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(clusters)) {
		for i, text := range clusters[name] {
			of, values, err := parser.NewParser(parser.Options{}).ParseSeriesDesc(text)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			builder := labels.NewBuilder(of)
			builder.Set("cluster", of.Get("cluster")+name)
			if name == "page" || name == "stored" {
				builder.Set("job", "j").Set("instance", "a")
			}
			all = append(all, prompb.TimeSeries{Labels: prompb.FromLabels(builder.Labels(), nil), Samples: drawn(of.Get("__name__"), values, float64(i))})
		}
	}
	return all
}

// drawn returns the samples of the nth series. No counter stands still, and those of more seconds than another's grow faster.
func drawn(name string, values []parser.SequenceValue, n float64) (all []prompb.Sample) {
	last, slope := 0.0, 0.0
	for _, v := range values {
		if !v.Omitted && !math.IsNaN(v.Value) {
			last = v.Value
		}
	}
	slope = (last + n/100) / float64(len(values))
	gap := true
	for i := range steps {
		at := values[min(max(i-before, 0), len(values)-1)]
		v := at.Value
		if counters.MatchString(name) {
			v, at.Omitted = slope*float64(i), false
		}
		if at.Omitted {
			if gap {
				continue
			}
			v = math.Float64frombits(value.StaleNaN)
		}
		gap = at.Omitted
		all = append(all, prompb.Sample{Value: v, Timestamp: began.Add(time.Duration(i-before) * step).UnixMilli()})
	}
	return all
}

// record evaluates a recording rule by Prometheus at each step.
func record(t *testing.T, p outside.Prometheus, q question) (all []prompb.TimeSeries) {
	t.Helper()
	result, err := p.QueryRange(t.Context(), q.promQL, began.Add(-before*step), began.Add((steps-1-before)*step), step)
	if err != nil {
		t.Fatalf("%s: %v", q.place, err)
	}
	name, query, _ := strings.Cut(q.record, "?")
	more, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range result {
		of := labels.NewBuilder(labels.FromMap(s.Metric))
		of.Set("__name__", name)
		for k := range more {
			of.Set(k, more.Get(k))
		}
		one := prompb.TimeSeries{Labels: prompb.FromLabels(of.Labels(), nil)}
		for i, v := range s.Values {
			at := int64(math.Round(1000 * v[0].(float64)))
			one.Samples = append(one.Samples, prompb.Sample{Value: v.Number(), Timestamp: at})
			next := at + step.Milliseconds()
			if i+1 < len(s.Values) && int64(math.Round(1000*s.Values[i+1][0].(float64))) > next || i+1 == len(s.Values) {
				one.Samples = append(one.Samples, prompb.Sample{Value: math.Float64frombits(value.StaleNaN), Timestamp: next})
			}
		}
		all = append(all, one)
	}
	return all
}

// write sends the same samples to both servers, and returns when both show them.
func write(t *testing.T, prometheus, victoria outside.Prometheus, all []prompb.TimeSeries) {
	t.Helper()
	for part := range slices.Chunk(all, 200) {
		request := &prompb.WriteRequest{Timeseries: part}
		text, err := request.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		text = snappy.Encode(nil, text)
		for _, p := range []outside.Prometheus{prometheus, victoria} {
			post(t, p.URL+"/api/v1/write", text)
		}
	}
	outside.Until(t, func() error {
		status, _, err := outside.Call(t.Context(), http.DefaultClient, http.MethodGet, victoria.URL+"/internal/force_flush")
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("force_flush: %d", status)
		}
		return err
	})
}

func post(t *testing.T, url string, text []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range map[string]string{
		"Content-Type": "application/x-protobuf", "Content-Encoding": "snappy", "X-Prometheus-Remote-Write-Version": "0.1.0",
	} {
		req.Header.Set(k, v)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode/100 != 2 {
		t.Fatalf("%s: %d, %v: %s", url, resp.StatusCode, err, said)
	}
}
