package scrape

import (
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/prometheus/model/histogram"
)

// A histogramMetric exports a histogram with the engine's own buckets: classic, native or both. No metric type of
// client_golang accepts given buckets of both kinds.
type histogramMetric struct {
	desc      *prometheus.Desc
	labels    []*dto.LabelPair
	histogram *dto.Histogram
}

// Desc implements prometheus.Metric.
func (p *histogramMetric) Desc() *prometheus.Desc { return p.desc }

// Write implements prometheus.Metric.
func (p *histogramMetric) Write(m *dto.Metric) error {
	m.Label, m.Histogram = p.labels, p.histogram
	return nil
}

func (b *Buckets) proto() *dto.Histogram {
	h := &dto.Histogram{SampleCount: new(b.Count), SampleSum: new(b.Sum)}
	for i, upper := range b.Upper {
		h.Bucket = append(h.Bucket, &dto.Bucket{UpperBound: new(upper), CumulativeCount: new(b.Cumulative[i])})
	}
	if n := b.Native; n != nil {
		h.Schema, h.ZeroThreshold, h.ZeroCount = new(n.Schema), new(n.ZeroThreshold), new(uint64(n.ZeroCount))
		h.PositiveSpan, h.PositiveDelta = spans(n.PositiveSpans), deltas(n.PositiveBuckets)
		h.NegativeSpan, h.NegativeDelta = spans(n.NegativeSpans), deltas(n.NegativeBuckets)
		if len(h.PositiveSpan)+len(h.NegativeSpan) == 0 && n.ZeroThreshold == 0 && n.ZeroCount == 0 {
			h.PositiveSpan = []*dto.BucketSpan{{Offset: new(int32(0)), Length: new(uint32(0))}} // else parsed as classic
		}
	}
	return h
}

func spans(list []histogram.Span) []*dto.BucketSpan {
	out := make([]*dto.BucketSpan, len(list))
	for i, s := range list {
		out[i] = &dto.BucketSpan{Offset: new(s.Offset), Length: new(s.Length)}
	}
	return out
}

// deltas converts counts to the protobuf format: each count as the difference from the previous one.
func deltas(counts []float64) []int64 {
	out := make([]int64, len(counts))
	before := int64(0)
	for i, c := range counts {
		out[i] = int64(c) - before
		before = int64(c)
	}
	return out
}
