package scrape

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/prometheus/model/histogram"

	"replayd/internal/secret"
)

// parts collects the samples of one rank's histogram.
type parts struct {
	rank       secret.Text
	cumulative map[float64]*bound // by le
	series     int                // number of classic histograms added up
	sum, count float64
	counted    bool
	native     *histogram.FloatHistogram
	natives    int // number of native histograms added up
	broken     bool
}

type bound struct {
	upper  float64
	count  float64
	series int
}

// histograms returns one histogram per rank. Histograms of one rank that differ in other labels are added up at the
// bounds that all of them share. A histogram that contradicts itself is left out.
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
			case s.Native != nil:
				of(s).merge(s.Native)
			case strings.HasSuffix(name, "_count"):
				of(s).add(s.Value)
			case strings.HasSuffix(name, "_sum"):
				of(s).sum += s.Value
			case strings.HasSuffix(name, "_bucket"):
				of(s).bucket(s)
			}
		}
	}
	q := quantity(r.Quantity)
	var figures []Figure
	for _, h := range all {
		if b := h.buckets(r.scale()); b != nil {
			figures = append(figures, Figure{Quantity: q, Rank: h.rank, Buckets: b})
		}
	}
	return figures
}

func (h *parts) add(count float64) {
	h.counted = true
	h.series++
	h.count += count
}

func (h *parts) bucket(s Sample) {
	upper, err := strconv.ParseFloat(s.Labels.Get("le"), 64)
	b := h.cumulative[upper]
	if b == nil {
		if err != nil || math.IsNaN(upper) || len(h.cumulative) > maxBuckets {
			h.broken = true
			return
		}
		b = &bound{upper: upper}
		h.cumulative[upper] = b
	}
	b.count += s.Value
	b.series++
}

func (h *parts) merge(n *histogram.FloatHistogram) {
	h.natives++
	if h.native == nil {
		h.native = n.Copy()
		return
	}
	if _, _, _, err := h.native.Add(n); err != nil { // custom buckets beside exponential ones
		h.broken = true
	}
}

// buckets returns the collected histogram with ascending bounds, or nil if the samples form no valid histogram.
func (h *parts) buckets(scale float64) *Buckets {
	b := &Buckets{Sum: h.sum * scale}
	// Native bounds cannot be scaled.
	if n := h.native; n != nil && scale == 1 && (!h.counted || h.natives == h.series) && isWhole(n) {
		if !h.counted {
			h.count, b.Sum, h.counted = n.Count, n.Sum, true
		}
		b.Native = n
	}
	bounds := make([]*bound, 0, len(h.cumulative))
	for _, c := range h.cumulative {
		if c.series == h.series { // skip bounds that some of the histograms lack
			bounds = append(bounds, c)
		}
	}
	slices.SortFunc(bounds, func(x, y *bound) int { return cmp.Compare(x.upper, y.upper) })
	if n := len(bounds); n > 0 && math.IsInf(bounds[n-1].upper, 1) {
		h.count = bounds[n-1].count // the engine may count more observations while it writes the page
		bounds = bounds[:n-1]
	}
	if h.broken || !h.counted || !isCount(h.count) || math.IsNaN(b.Sum) || len(bounds) == 0 && b.Native == nil {
		return nil
	}
	b.Count = uint64(h.count)
	if b.Native != nil && b.Native.Count != h.count { // Prometheus rejects a histogram with two different counts
		b.Native = nil
	}
	before := 0.0
	for _, c := range bounds {
		if !isCount(c.count) || c.count < before || c.count > h.count {
			return nil
		}
		before = c.count
		b.Upper = append(b.Upper, c.upper*scale)
		b.Cumulative = append(b.Cumulative, uint64(c.count))
	}
	return b
}

// isWhole reports whether a native histogram holds integer counts and is consistent.
func isWhole(n *histogram.FloatHistogram) bool {
	for _, counts := range [][]float64{n.PositiveBuckets, n.NegativeBuckets, {n.ZeroCount, n.Count}} {
		if slices.ContainsFunc(counts, func(c float64) bool { return !isCount(c) }) {
			return false
		}
	}
	return !histogram.IsCustomBucketsSchema(n.Schema) && n.Validate() == nil
}

// isCount reports whether f is a non-negative integer that a float64 represents exactly.
func isCount(f float64) bool { return f >= 0 && f < 1<<53 && f == math.Trunc(f) }
