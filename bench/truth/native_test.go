//go:build bench && linux

package truth_test

import (
	"fmt"
	"math"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/prometheus/model/histogram"

	"replayd/bench/lab"
	"replayd/test/outside"
)

func nativeTable() *lab.Table {
	table := &lab.Table{
		Title: "Native histograms of /metrics against the exact quantiles of the same requests:",
		Head:  []string{"streams", "of", "schema", "values", "p50", "is", "error, %", "p90", "is", "error, %", "p99", "is", "error, %"},
	}
	table.Note("A quantile of a native histogram lies in the bucket that holds the exact one. A bucket of schema s reaches from a bound to 2^(2^−s) times it, " +
		"so the two are apart by less than that: 9.05 %% at schema 3, 4.43 %% at schema 4, whatever the values. Times in ms.")
	return table
}

// holdNative compares quantiles as Prometheus computes them with exact ones. It asserts that both are in the same
// bucket, which is arithmetic.
func (l load) holdNative(t *testing.T, table *lab.Table, p played) {
	t.Helper()
	exact := map[string]lab.Sample{}
	for _, seen := range p.seen {
		last := seen.Chunks[len(seen.Chunks)-1]
		exact["ttft"] = append(exact["ttft"], float64(seen.Chunks[0]-seen.Start)/1e9)
		exact["e2e"] = append(exact["e2e"], float64(last-seen.Start)/1e9)
		for i := 1; i < len(seen.Chunks); i++ {
			exact["itl"] = append(exact["itl"], float64(seen.Chunks[i]-seen.Chunks[i-1])/1e9)
		}
	}
	for _, name := range []string{"ttft", "itl", "e2e"} {
		h := nativeHistogram(t, p.page.Page, "replayd_"+name+"_seconds")
		values := exact[name]
		if h.Count != float64(len(values)) {
			t.Errorf("%s: want %d values on the page, got %v", name, len(values), h.Count)
			continue
		}
		bound := math.Exp2(math.Exp2(-float64(h.Schema)))
		cells := []string{l.String(), name, fmt.Sprint(h.Schema), fmt.Sprint(len(values))}
		for _, q := range []float64{0.5, 0.9, 0.99} {
			shown, is := quantile(q, h), values.Quantile(q)
			cells = append(cells, lab.Number(1e3*shown), lab.Number(1e3*is), fmt.Sprintf("%+.2f", 100*(shown/is-1)))
			// A bucket can hold the two values around the exact quantile: with many values they are nearly one.
			low, high := values.Around(q)
			if low > h.ZeroThreshold && (shown < low/bound || shown > high*bound) {
				t.Errorf("%s, %v: want %v to %v, within a bucket of it, got %v", name, q, low/bound, high*bound, shown)
			}
		}
		table.Add(cells...)
	}
}

// nativeHistogram returns the only metric of a family, as Prometheus stores it.
func nativeHistogram(t *testing.T, page outside.Page, name string) *histogram.FloatHistogram {
	t.Helper()
	metrics := page[name].GetMetric()
	if len(metrics) != 1 || metrics[0].GetHistogram().GetPositiveSpan() == nil {
		t.Fatalf("%s: want one native histogram, got %d metrics", name, len(metrics))
	}
	from := metrics[0].GetHistogram()
	spans := func(all []*dto.BucketSpan) (to []histogram.Span) {
		for _, s := range all {
			to = append(to, histogram.Span{Offset: s.GetOffset(), Length: s.GetLength()})
		}
		return to
	}
	h := &histogram.Histogram{
		Schema: from.GetSchema(), ZeroThreshold: from.GetZeroThreshold(), ZeroCount: from.GetZeroCount(),
		Count: from.GetSampleCount(), Sum: from.GetSampleSum(),
		PositiveSpans: spans(from.GetPositiveSpan()), PositiveBuckets: from.GetPositiveDelta(),
	}
	if err := h.Validate(); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return h.ToFloat(nil)
}

// quantile is histogram_quantile of a native histogram without negative buckets: between a bucket's bounds on a
// logarithmic scale, in the zero bucket from 0 on a linear scale, and counted from the top for q ≥ 0.5
// (HistogramQuantile in promql/quantile.go of Prometheus 3).
func quantile(q float64, h *histogram.FloatHistogram) float64 {
	buckets, rank := h.AllBucketIterator(), q*h.Count
	if q >= 0.5 {
		buckets, rank = h.AllReverseBucketIterator(), (1-q)*h.Count
	}
	var b histogram.Bucket[float64]
	count := 0.0
	for buckets.Next() {
		if b = buckets.At(); b.Count == 0 {
			continue
		}
		if count += b.Count; count >= rank {
			break
		}
	}
	part := (rank - (count - b.Count)) / b.Count
	if q >= 0.5 {
		part = (count - rank) / b.Count
	}
	if b.Lower <= 0 {
		return b.Upper * part
	}
	low, high := math.Log2(b.Lower), math.Log2(b.Upper)
	return math.Exp2(low + (high-low)*part)
}
