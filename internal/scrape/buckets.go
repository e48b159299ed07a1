package scrape

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/prometheus/model/labels"

	"replayd/internal/secret"
)

// parts collects the samples of one rank's histogram.
type parts struct {
	rank       secret.Text
	cumulative map[float64]*bound // by le
	series     int                // number of histograms added up
	sums       int                // of them, those with a sum
	sum, count float64
	broken     bool
}

type bound struct {
	count  float64
	series int
}

// histograms returns one histogram per rank. Histograms of one rank that differ in other labels are added up at the
// bounds that all of them share. If one contradicts itself, there are none.
func (r Row) histograms(p *Page) []Figure {
	var all []*parts
	of := func(s Sample) *parts {
		rank := r.rank(p, s)
		if i := slices.IndexFunc(all, func(h *parts) bool { return h.rank == rank }); i >= 0 {
			return all[i]
		}
		h := &parts{rank: rank, cumulative: map[float64]*bound{}}
		if len(all) < maxRanks {
			all = append(all, h)
		}
		return h
	}
	for _, name := range r.names() {
		for _, s := range r.samples(p, name) {
			switch {
			case strings.HasSuffix(name, "_count"):
				h := of(s)
				h.series++
				h.count += s.Value
			case strings.HasSuffix(name, "_sum"):
				h := of(s)
				h.sums++
				h.sum += s.Value
			case strings.HasSuffix(name, "_bucket"):
				of(s).bucket(s)
			}
		}
	}
	q := quantity(r.Quantity)
	var figures []Figure
	for _, h := range all {
		b := h.buckets(r.scale())
		switch {
		case b != nil:
			figures = append(figures, Figure{Quantity: q, Rank: h.rank, Buckets: b})
		case len(h.cumulative) > 0: // without buckets it is a summary
			p.refuse(r.Family, Sample{labels.FromStrings(r.Rank, string(h.rank)), h.count}, "a histogram whose buckets, _sum and _count agree")
			return nil // a sample of another rank may be among its own
		}
	}
	return figures
}

func (h *parts) bucket(s Sample) {
	upper, err := strconv.ParseFloat(s.Labels.Get("le"), 64)
	b := h.cumulative[upper]
	if b == nil {
		if err != nil || math.IsNaN(upper) || len(h.cumulative) > maxBuckets {
			h.broken = true
			return
		}
		b = &bound{}
		h.cumulative[upper] = b
	}
	b.count += s.Value
	b.series++
}

// buckets returns the collected histogram with ascending bounds, or nil if the samples form no valid histogram.
func (h *parts) buckets(scale float64) *dto.Histogram {
	bounds := slices.Sorted(maps.Keys(h.cumulative))
	bounds = slices.DeleteFunc(bounds, func(upper float64) bool { return h.cumulative[upper].series != h.series }) // some histograms lack it
	if n := len(bounds); n > 0 && math.IsInf(bounds[n-1], 1) {
		h.count = h.cumulative[bounds[n-1]].count // the engine may count more observations while it writes the page
		bounds = bounds[:n-1]
	}
	sum := h.sum * scale
	if h.broken || h.series == 0 || h.sums != h.series || !isCount(h.count) || !(sum >= 0 && sum < math.MaxFloat64) || len(bounds) == 0 {
		return nil
	}
	b := &dto.Histogram{SampleCount: new(uint64(h.count)), SampleSum: &sum}
	before := 0.0
	for _, upper := range bounds {
		count := h.cumulative[upper].count
		if !isCount(count) || count < before || count > h.count {
			return nil
		}
		before = count
		b.Bucket = append(b.Bucket, &dto.Bucket{UpperBound: new(upper * scale), CumulativeCount: new(uint64(count))})
	}
	return b
}

// isCount reports whether f is a non-negative integer that a float64 represents exactly.
func isCount(f float64) bool { return f >= 0 && f < 1<<53 && f == math.Trunc(f) }
