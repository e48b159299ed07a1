package scrape

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// Limits of the series that one engine's page can add to replayd's page.
const (
	maxRanks   = 256 // data-parallel ranks
	maxBuckets = 200 // buckets of a histogram
	maxLabel   = 128 // bytes of a label value
)

// A Reading is an engine's page translated to the vocabulary.
type Reading struct {
	Engine  string // empty: not in the vocabulary
	Model   string // the first model_name or model label of the page; empty: none
	Figures []Value
	gaps    map[*Quantity]bool // quantities that are missing for some ranks or have more than maxRanks ranks
}

// A Value is the value of one quantity for one rank.
type Value struct {
	Quantity *Quantity
	Rank     string // empty: the engine has no ranks
	Value    float64
	Buckets  *Buckets // for a histogram only
}

// Read translates p to the vocabulary. The engine is the one whose rows find the most quantities: a page can hold the
// metrics of several engines, for instance a Dynamo worker with its own and those of its engine. If no row finds any,
// the engine is told, which Recognizer derived from the names on the page. A quantity found by the user's rows replaces
// the engine's.
func (v *Vocabulary) Read(p *Page, told string) *Reading {
	best := &Reading{Engine: told, gaps: map[*Quantity]bool{}}
	most := 0
	for _, engine := range v.engines {
		r, found := read(p, v.rows[engine])
		if len(found) > most {
			most, best = len(found), r
			best.Engine = engine
		}
	}
	mine := v.user
	if best.Engine != "" { // skip the user's rows for other engines
		mine = slices.DeleteFunc(slices.Clone(mine), func(r Row) bool { return r.Engine != "" && v.rows[r.Engine] != nil && r.Engine != best.Engine })
	}
	r, found := read(p, mine)
	if len(found) == 0 {
		return best
	}
	best.Figures = slices.DeleteFunc(best.Figures, func(f Value) bool { return found[f.Quantity] != nil })
	best.Figures = append(best.Figures, r.Figures...)
	for q := range found {
		best.gaps[q] = r.gaps[q]
	}
	best.Model = cmp.Or(best.Model, r.Model)
	if best.Engine == "" {
		best.Engine = "custom"
	}
	for i := range mine {
		if row := &mine[i]; row.Engine != "" && found[quantity(row.Quantity)] == row {
			best.Engine = row.Engine
		}
	}
	return best
}

// read returns the figures that rows find on a page. Of several rows for one quantity, the first that finds figures
// counts.
func read(p *Page, rows []Row) (r *Reading, found map[*Quantity]*Row) {
	r, found = &Reading{gaps: map[*Quantity]bool{}}, map[*Quantity]*Row{}
	for i := range rows {
		row := &rows[i]
		q := quantity(row.Quantity)
		if found[q] != nil {
			continue
		}
		var got []Value
		var gap bool
		if row.kind() == Histogram && row.Take == "" {
			got = row.histograms(p)
		} else {
			got, gap = row.values(p)
		}
		if gap {
			r.gaps[q] = true
		}
		if len(got) == 0 {
			continue
		}
		found[q] = row
		r.Figures = append(r.Figures, got...)
		if r.Model == "" {
			r.Model = row.model(p)
		}
	}
	return r, found
}

// load returns the waiting requests of all ranks together and the highest KV-cache usage. A figure that is missing for
// some ranks is NaN.
func (r *Reading) load() Load {
	l := unknown
	for _, f := range r.Figures {
		switch {
		case r.gaps[f.Quantity]:
		case f.Quantity.Name == "requests_waiting":
			if math.IsNaN(l.Waiting) {
				l.Waiting = 0
			}
			l.Waiting += f.Value
		case f.Quantity.Name == "kv_cache_usage_ratio":
			if math.IsNaN(l.KVCacheUsage) || f.Value > l.KVCacheUsage {
				l.KVCacheUsage = f.Value
			}
		}
	}
	return l
}

// samples returns the samples of name that match r.Select and r.Prefer.
func (r Row) samples(p *Page, name string) []Sample {
	list := p.Samples[name]
	if r.Select != "" {
		list = keep(list, r.Select)
	}
	if r.Prefer != "" {
		if some := keep(list, r.Prefer); len(some) > 0 {
			list = some
		}
	}
	return list
}

// keep returns the samples that match "label=value", or that have the label for "label=*". A missing label equals an
// empty one, as in Prometheus.
func keep(list []Sample, match string) []Sample {
	label, value, _ := strings.Cut(match, "=")
	var kept []Sample
	for _, s := range list {
		if got := s.Labels.Get(label); got == value || value == "*" && got != "" {
			kept = append(kept, s)
		}
	}
	return kept
}

// rank returns the data-parallel rank of the sample.
func (r Row) rank(s Sample) string {
	if r.Rank == "" {
		return ""
	}
	return cut(s.Labels.Get(r.Rank))
}

// values returns the row's counter or gauge by rank, in the order of the page. gap is true if ranks are missing.
func (r Row) values(p *Page) (figures []Value, gap bool) {
	figures, gap = r.counted(p)
	if r.Plus != "" && len(figures) > 0 {
		return r.plus(p, figures, gap)
	}
	if r.Less == "" || len(figures) == 0 {
		return figures, gap
	}
	less, missing := r.merge(Row{}.samples(p, r.Less))
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
func (r Row) counted(p *Page) (figures []Value, gap bool) {
	for _, name := range r.names() {
		if list := r.samples(p, name); len(list) > 0 {
			return r.merge(list)
		}
	}
	return nil, false
}

// plus adds the values of r.Plus. A rank with only one of the two families gets no figure: the sum would be too low,
// and a counter that falls because one family is missing looks like a restart.
func (r Row) plus(p *Page, figures []Value, gap bool) ([]Value, bool) {
	added, missing := r.added().counted(p)
	whole := figures[:0]
	for _, f := range figures {
		if i := slices.IndexFunc(added, func(a Value) bool { return a.Rank == f.Rank }); i >= 0 {
			f.Value += added[i].Value
			whole = append(whole, f)
		} else {
			missing = true
		}
	}
	return whole, gap || missing
}

// merge merges the samples of each rank to one figure. A rank with a NaN, infinite or negative counter sample gets no
// figure: the sum would be too low and look like a counter reset.
func (r Row) merge(list []Sample) (merged []Value, gap bool) {
	q := quantity(r.Quantity)
	var bad []string
	for _, s := range list {
		value, rank := s.Value*r.scale(), r.rank(s)
		if math.IsNaN(value) || math.IsInf(value, 0) || q.Kind == Counter && value < 0 {
			bad = append(bad, rank)
			continue
		}
		i := slices.IndexFunc(merged, func(f Value) bool { return f.Rank == rank })
		switch {
		case i < 0 && len(merged) == maxRanks:
			gap = true
		case i < 0:
			merged = append(merged, Value{Quantity: q, Rank: rank, Value: value})
		case r.Merge == "max":
			merged[i].Value = max(merged[i].Value, value)
		default:
			merged[i].Value += value
		}
	}
	merged = slices.DeleteFunc(merged, func(f Value) bool { return slices.Contains(bad, f.Rank) })
	return merged, gap || len(bad) > 0
}

// model returns the model label of the first sample that has one.
func (r Row) model(p *Page) string {
	for _, name := range r.names() {
		for _, s := range r.samples(p, name) {
			if m := cmp.Or(s.Labels.Get("model_name"), s.Labels.Get("model")); m != "" {
				return cut(m)
			}
		}
	}
	return ""
}

// cut bounds a label value from an engine's page for use on replayd's page.
func cut(s string) string {
	if len(s) > maxLabel {
		s = s[:maxLabel]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
