package web

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

const (
	openMetrics = "application/openmetrics-text;version=1.0.0"
	protobuf    = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"
	// The Accept header of Prometheus 3.5 with native histograms enabled.
	prometheusSends = protobuf + ";q=0.6," + openMetrics + ";escaping=allow-utf-8;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4," +
		"text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1"
)

func TestMetricsAreNegotiated(t *testing.T) {
	s := serve(t, Options{Registry: registry(t)})
	s.Ready()
	for _, c := range []struct {
		accept, kind string
		has, hasNot  string
	}{
		{"", "text/plain; version=0.0.4", "test_seconds_bucket{le=\"1\"} 1\n", "request_id"},
		{"text/plain;version=0.0.4", "text/plain; version=0.0.4", "test_seconds_bucket{le=\"1\"} 1\n", "# EOF"},
		{"text/html,application/xhtml+xml,*/*;q=0.8", "text/plain; version=0.0.4", "test_seconds_count 1\n", "# EOF"},
		{openMetrics, "application/openmetrics-text; version=1.0.0", `le="1.0"} 1 # {request_id="w/0/7"} 0.5`, "test_seconds_bucket{le=\"1\"}"},
		{prometheusSends, "application/vnd.google.protobuf", "w/0/7", "# HELP"},
	} {
		got := get(t, s.URL()+"/metrics", c.accept)
		if kind := got.header.Get("Content-Type"); got.code != http.StatusOK || !strings.HasPrefix(kind, c.kind) {
			t.Errorf("%q: want %s, got %d, %s", c.accept, c.kind, got.code, kind)
		}
		if !strings.Contains(got.body, c.has) || strings.Contains(got.body, c.hasNot) {
			t.Errorf("%q: want %q and no %q in\n%s", c.accept, c.has, c.hasNot, got.body)
		}
	}
	got := get(t, s.URL()+"/metrics", openMetrics)
	if !strings.HasSuffix(got.body, "\n# EOF\n") || strings.Contains(got.body, "_created") {
		t.Errorf("OpenMetrics: want # EOF at the end and no series of creation times, got\n%s", got.body)
	}
}

// Only protobuf has native histograms and their exemplars.
func TestMetricsAsProtobuf(t *testing.T) {
	s := serve(t, Options{Registry: registry(t)})
	s.Ready()
	got := get(t, s.URL()+"/metrics", protobuf)
	decoder := expfmt.NewDecoder(strings.NewReader(got.body), expfmt.ResponseFormat(got.header))
	for {
		var f dto.MetricFamily
		if err := decoder.Decode(&f); err != nil {
			t.Fatalf("no test_seconds before %v", err)
		}
		if f.GetName() != "test_seconds" {
			continue
		}
		h := f.GetMetric()[0].GetHistogram()
		// Factor 1.1 is schema 3; 0.5 is a power of 2, so it is the upper bound of bucket −8: (2^(1/8))^-8.
		if h.GetSchema() != 3 || len(h.GetPositiveSpan()) != 1 || h.GetPositiveSpan()[0].GetOffset() != -8 || h.GetSampleCount() != 1 {
			t.Errorf("want schema 3 with one value in bucket -8, got %v", h)
		}
		if len(h.GetBucket()) != 1 || h.GetBucket()[0].GetCumulativeCount() != 1 {
			t.Fatalf("want the classic bucket too, got %v", h.GetBucket())
		}
		if len(h.GetExemplars()) != 1 {
			t.Fatalf("want an exemplar of the native buckets, got %v", h.GetExemplars())
		}
		for _, e := range []*dto.Exemplar{h.GetBucket()[0].GetExemplar(), h.GetExemplars()[0]} {
			if l := e.GetLabel(); e.GetValue() != 0.5 || len(l) != 1 || l[0].GetName() != "request_id" || l[0].GetValue() != "w/0/7" {
				t.Errorf("want 0.5 of the request w/0/7, got %v", e)
			}
		}
		return
	}
}

func TestMetricsAreCompressed(t *testing.T) {
	s := serve(t, Options{Registry: registry(t)})
	s.Ready()
	for _, c := range []struct {
		accepted, encoding string
		unpack             func(io.Reader) (io.Reader, error)
	}{
		{"identity", "", func(r io.Reader) (io.Reader, error) { return r, nil }},
		{"gzip", "gzip", func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) }},
		{"zstd", "zstd", func(r io.Reader) (io.Reader, error) { return zstd.NewReader(r, zstd.WithDecoderConcurrency(1)) }},
		{"gzip, deflate, br, zstd", "gzip", func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) }}, // browsers
		{"br, zstd;q=0.5, gzip;q=0.1", "zstd", func(r io.Reader) (io.Reader, error) { return zstd.NewReader(r, zstd.WithDecoderConcurrency(1)) }},
	} {
		got := ask(t, "GET", s.URL()+"/metrics", "", "Accept-Encoding", c.accepted)
		if got.header.Get("Content-Encoding") != c.encoding {
			t.Errorf("%s: want %q, got %q", c.accepted, c.encoding, got.header.Get("Content-Encoding"))
			continue
		}
		if want, vary := "Accept, Accept-Encoding", strings.Join(got.header.Values("Vary"), ", "); vary != want {
			t.Errorf("%s: Vary: want %q, got %q", c.accepted, want, vary)
		}
		r, err := c.unpack(strings.NewReader(got.body))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil || !bytes.Contains(text, []byte("test_seconds_count 1\n")) {
			t.Errorf("%s: want the page, got %q, %v", c.accepted, text, err)
		}
	}
}
