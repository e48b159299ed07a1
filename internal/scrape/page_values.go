package scrape

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"

	"replayd/internal/secret"
)

// Limits of the series that one engine's page can add to replayd's page.
const (
	maxRanks   = 256 // data-parallel ranks
	maxBuckets = 200 // buckets of a histogram
)

// A Reading is an engine's page translated to the vocabulary.
type Reading struct {
	Engine  string      // empty: not in the vocabulary
	Model   secret.Text // the first model_name or model label of the page; empty: none
	Figures []Figure
	gaps    map[*Quantity]bool // quantities that are missing for some ranks or have more than maxRanks ranks
	unknown guarded            // ranks of quantities that are on the page without a value
}

// A Figure is the value of one quantity for one rank.
type Figure struct {
	Quantity *Quantity
	Rank     secret.Text // empty: the engine has no ranks
	Value    float64
	Buckets  *dto.Histogram // with the bounds that the engine uses, ascending, without +Inf; for a histogram only
}

// samples returns the samples of name that match r.Select and r.Prefer.
func (r Row) samples(p *Page, name string) []Sample {
	list := p.Samples[name]
	if r.Select != "" {
		list = matching(list, r.Select)
	}
	if r.Prefer != "" {
		if some := matching(list, r.Prefer); len(some) > 0 {
			list = some
		}
	}
	return list
}

// matching returns the samples that match "label=value", or that have the label for "label=*". A missing label equals
// an empty one, as in Prometheus.
func matching(list []Sample, match string) []Sample {
	label, value, _ := strings.Cut(match, "=")
	var kept []Sample
	for _, s := range list {
		if got := s.Labels.Get(label); got == value || value == "*" && got != "" {
			kept = append(kept, s)
		}
	}
	return kept
}

func (r Row) rank(p *Page, s Sample) secret.Text {
	if r.Rank == "" {
		return ""
	}
	return p.Text(s.Labels.Get(r.Rank))
}

// isDamaged reports whether a line of the row's families could not be read, so that its figures would be wrong.
func (r Row) isDamaged(p *Page) bool {
	return len(p.damaged) > 0 && slices.ContainsFunc(r.reads(), p.isDamaged)
}

// values returns the row's counter or gauge by rank, in the order of the page. The value of a rank is NaN where it is not
// known. gap is true if ranks are missing.
func (r Row) values(p *Page) (figures []Figure, gap bool) {
	figures, gap = r.counted(p)
	if r.Plus != "" && len(figures) > 0 {
		return r.plus(p, figures, gap)
	}
	if r.Less == "" || len(figures) == 0 {
		return figures, gap
	}
	less, missing := r.merge(p, r.Less, Row{}.samples(p, r.Less))
	if missing || len(less) == 0 { // without the value to subtract, the figures would be too high
		return nil, true
	}
	for _, l := range less {
		for i := range figures {
			if figures[i].Rank == l.Rank {
				// The engine does not read the two values at the same time, so the difference can be negative.
				figures[i].Value = max(0, figures[i].Value-l.Value)
			}
		}
	}
	return figures, gap
}

// counted returns the figures of r.Family, without Less and Plus.
func (r Row) counted(p *Page) (figures []Figure, gap bool) {
	for _, name := range r.names() {
		if list := r.samples(p, name); len(list) > 0 {
			return r.merge(p, name, list)
		}
	}
	return nil, false
}

// plus adds the values of r.Plus. A rank for which one of the families is missing gets NaN: the sum would be too low, and
// a counter that falls because one family is missing looks like a restart. A gauge may lack a family for all ranks: an
// engine has the queues of what it does.
func (r Row) plus(p *Page, figures []Figure, gap bool) ([]Figure, bool) {
	for _, other := range r.added() {
		added, missing := other.counted(p)
		gap = gap || missing
		if len(added) == 0 && !missing && r.kind() == Gauge {
			continue
		}
		for i, f := range figures {
			if at := slices.IndexFunc(added, func(a Figure) bool { return a.Rank == f.Rank }); at >= 0 {
				figures[i].Value += added[at].Value
			} else {
				figures[i].Value = math.NaN()
			}
		}
		gap = gap || len(added) > len(figures)
	}
	return figures, gap
}

// merge merges the samples of each rank to one figure. Ranks are compared as they are shown: two with one text would be
// a duplicate series. A rank with a sample that is NaN or that cannot be gets NaN: the sum would be too low and look like a
// counter reset.
func (r Row) merge(p *Page, name string, list []Sample) (merged []Figure, gap bool) {
	q := quantity(r.Quantity)
	for _, s := range r.once(list) {
		value, rank := s.Value*r.scale(), r.rank(p, s)
		if !q.canBe(value) && !math.IsNaN(value) { // NaN says that there is no value
			p.refuse(name, s, fmt.Sprintf("a %s from 0 to %g", q.Name, q.most/r.scale()))
			value = math.NaN()
		}
		i := slices.IndexFunc(merged, func(f Figure) bool { return f.Rank == rank })
		switch {
		case i < 0 && len(merged) == maxRanks:
			gap = true
		case i < 0:
			merged = append(merged, Figure{Quantity: q, Rank: rank, Value: value})
		case r.Merge == "max", q.most == 1:
			merged[i].Value = max(merged[i].Value, value)
		default:
			merged[i].Value += value
		}
	}
	for i, f := range merged {
		if !q.canBe(f.Value) {
			merged[i].Value = math.NaN()
		}
	}
	return merged, gap
}

// once leaves out samples that say again what others say: an aggregate beside its ranks, and a gauge of several processes
// that differs in the label pid alone, of which the largest stays.
func (r Row) once(list []Sample) []Sample {
	ranked := func(s Sample) bool { return s.Labels.Get(r.Rank) != "" }
	if r.Rank != "" && slices.ContainsFunc(list, ranked) {
		list = slices.DeleteFunc(slices.Clone(list), func(s Sample) bool { return !ranked(s) })
	}
	if r.kind() != Gauge || !slices.ContainsFunc(list, func(s Sample) bool { return s.Labels.Has("pid") }) {
		return list
	}
	kept, places := []Sample{}, map[uint64]int{}
	for _, s := range list {
		hash, _ := s.Labels.HashWithoutLabels(nil, "pid")
		if at, known := places[hash]; !known {
			places[hash] = len(kept)
			kept = append(kept, s)
		} else if s.Value > kept[at].Value {
			kept[at] = s
		}
	}
	return kept
}

// model returns the model label of the first sample that has one.
func (r Row) model(p *Page) secret.Text {
	for _, name := range r.names() {
		for _, s := range r.samples(p, name) {
			if m := p.Text(cmp.Or(s.Labels.Get("model_name"), s.Labels.Get("model"))); m != "" {
				return m
			}
		}
	}
	return ""
}
