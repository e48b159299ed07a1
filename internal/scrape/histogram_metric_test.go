package scrape

import (
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/prometheus/model/histogram"
	"google.golang.org/protobuf/testing/protocmp"
)

// passedOn scrapes a registry as an engine and returns the exported TTFT histogram.
func passedOn(t *testing.T, reg *prometheus.Registry) *dto.Histogram {
	t.Helper()
	s := httptest.NewServer(promhttp.HandlerFor(reg, promhttp.HandlerOpts{}))
	defer s.Close()
	f := newFixture()
	target := f.target(t, nil, TargetOptions{Page: s.URL, Map: []Row{{Family: "ttft_seconds", Quantity: "ttft_seconds"}}})
	target.Show()
	target.endpoints[0].scrape(t.Context())
	families, err := f.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "replayd_engine_ttft_seconds" {
			return family.GetMetric()[0].GetHistogram()
		}
	}
	t.Fatalf("want the histogram on the page\n%s", f.log.String())
	return nil
}

// filled returns the counts of the non-empty native buckets by index.
func filled(h *dto.Histogram) map[int32]int64 {
	buckets := map[int32]int64{}
	index, count, i := int32(0), int64(0), 0
	for _, span := range h.PositiveSpan {
		index += span.GetOffset()
		for range span.GetLength() {
			count += h.PositiveDelta[i]
			if i++; count > 0 {
				buckets[index] = count
			}
			index++
		}
	}
	return buckets
}

// Classic and native buckets are passed on unchanged, and a native-only histogram stays native-only. Histograms of
// ranks that the row does not tell apart are added up in both kinds.
func TestNativeHistogramsPassThrough(t *testing.T) {
	for _, c := range []struct {
		name   string
		bounds []float64
		series int
	}{
		{"both kinds", []float64{0.1, 1}, 1}, {"native alone", nil, 1}, {"of two series", []float64{0.1, 1}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			reg, all := prometheus.NewRegistry(), prometheus.NewRegistry()
			o := prometheus.HistogramOpts{Name: "ttft_seconds", Buckets: c.bounds, NativeHistogramBucketFactor: 1.1, NativeHistogramZeroThreshold: 0.001}
			vec, whole := prometheus.NewHistogramVec(o, []string{"model"}), prometheus.NewHistogram(o)
			reg.MustRegister(vec)
			all.MustRegister(whole)
			for i := range 100 {
				v := float64(i*i) / 1000
				vec.WithLabelValues(string(rune('a' + i%c.series))).Observe(v)
				whole.Observe(v)
			}
			families, err := all.Gather()
			if err != nil {
				t.Fatal(err)
			}
			want := families[0].GetMetric()[0].GetHistogram()
			got := passedOn(t, reg)
			if d := cmp.Diff(filled(want), filled(got)); d != "" {
				t.Errorf("native buckets: -want +got\n%s", d)
			}
			// The parser drops empty buckets inside spans. The engine's created timestamp is not passed on.
			for _, h := range []*dto.Histogram{want, got} {
				h.PositiveSpan, h.PositiveDelta, h.CreatedTimestamp = nil, nil, nil
			}
			sum := cmp.Comparer(func(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 })
			if d := cmp.Diff(want, got, protocmp.Transform(), sum); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}

// An empty native histogram stays native.
func TestEmptyNativeHistogram(t *testing.T) {
	got := (&Buckets{Native: &histogram.FloatHistogram{Schema: 3}}).proto()
	if len(got.PositiveSpan) != 1 || got.PositiveSpan[0].GetLength() != 0 {
		t.Errorf("want a span of nothing, which tells it from a classic one, got %v", got)
	}
}

// Native buckets that contradict the classic count are left out: a histogram with two counts would fail the whole
// scrape of replayd.
func TestNativeHistogramsThatDoNotFit(t *testing.T) {
	native := func(counts ...float64) *histogram.FloatHistogram {
		n := &histogram.FloatHistogram{Schema: 0, PositiveSpans: []histogram.Span{{Length: uint32(len(counts))}}, PositiveBuckets: counts}
		for _, c := range counts {
			n.Count += c
		}
		return n
	}
	classic := []string{`h_bucket{m="a",le="1"} 2`, `h_bucket{m="a",le="+Inf"} 4`, `h_sum{m="a"} 5`, `h_count{m="a"} 4`}
	other := []string{`h_bucket{m="b",le="1"} 3`, `h_bucket{m="b",le="+Inf"} 3`, `h_sum{m="b"} 1`, `h_count{m="b"} 3`}
	bad := native(1, 3)
	bad.Count = 9
	for _, c := range []struct {
		name    string
		natives []*histogram.FloatHistogram
		lines   []string
		kept    bool
	}{
		{"fits", []*histogram.FloatHistogram{native(1, 3)}, classic, true},
		{"of one of two series", []*histogram.FloatHistogram{native(1, 3)}, append(classic, other...), false},
		{"another count", []*histogram.FloatHistogram{native(1, 1)}, classic, false},
		{"contradicts itself", []*histogram.FloatHistogram{bad}, classic, false},
		{"halves", []*histogram.FloatHistogram{native(1.5, 2.5)}, classic, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := page(t, c.lines...)
			for _, n := range c.natives {
				p.Samples["h"] = append(p.Samples["h"], Sample{Native: n})
			}
			figures := Row{Family: "h", Quantity: "ttft_seconds"}.histograms(p)
			if len(figures) != 1 || (figures[0].Buckets.Native != nil) != c.kept || len(figures[0].Buckets.Upper) != 1 {
				t.Fatalf("want the classic histogram, and the native one: %v; got %+v", c.kept, figures)
			}
			if got := figures[0].Buckets.proto(); c.kept && (got.GetSampleCount() != 4 || !cmp.Equal(got.PositiveDelta, []int64{1, 2})) {
				t.Errorf("got %v", got)
			}
		})
	}
}
