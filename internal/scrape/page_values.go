package scrape

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// Limits of what one page may put on replayd's own.
const (
	maxRanks   = 256 // data-parallel ranks
	maxBuckets = 200 // of a histogram
	maxLabel   = 128 // bytes of a label value
)

// A Reading is a page in the vocabulary.
type Reading struct {
	Engine  string // empty: none that the vocabulary knows
	Model   string // the page's first model_name (or model) label; empty: it has none
	Figures []Value
	gaps    map[*Quantity]bool // quantities that some ranks have and some do not, or that have too many ranks
}

// A Value is one quantity of one rank.
type Value struct {
	Quantity *Quantity
	Rank     string // empty: the engine has no ranks
	Value    float64
	Buckets  *Buckets // of a histogram
}

// Read maps a page of an engine that its names told, if they did. Else, and where that has figures, the engine is the one that
// most quantities are found of, so that a page that holds several (a worker of Dynamo has its own and its engine's) goes to
// the one that says most.
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
	if best.Engine != "" { // rows for another engine are not for this page
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

// read gives the figures that rows find on a page: of several for one quantity those of the first that finds any.
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

// load adds up what is waiting of all ranks and finds the fullest of their caches; NaN where a rank is missing.
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

// samples are those that the row is about.
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

// keep gives the samples with a label of a value, or with the label: "label=*". A sample without the label has it empty,
// as Prometheus sees it.
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

// rank is the sample's data-parallel rank.
func (r Row) rank(s Sample) string {
	if r.Rank == "" {
		return ""
	}
	return cut(s.Labels.Get(r.Rank))
}

// values gives the row's counter or gauge by rank, in the order of the page. A gap: not of all ranks.
func (r Row) values(p *Page) (figures []Value, gap bool) {
	figures, gap = r.counted(p)
	if r.Plus != "" && len(figures) > 0 {
		return r.plus(p, figures, gap)
	}
	if r.Less == "" || len(figures) == 0 {
		return figures, gap
	}
	less, missing := r.merge(Row{}.samples(p, r.Less))
	if missing || len(less) == 0 { // all of it would be too much
		return nil, true
	}
	for _, l := range less {
		for i := range figures {
			if figures[i].Rank == l.Rank {
				// The two were not read at the same instant of the engine's.
				figures[i].Value = max(0, figures[i].Value-l.Value)
			}
		}
	}
	return figures, gap
}

// counted gives the figures of the family itself.
func (r Row) counted(p *Page) (figures []Value, gap bool) {
	for _, name := range r.names() {
		if list := r.samples(p, name); len(list) > 0 {
			return r.merge(list)
		}
	}
	return nil, false
}

// plus adds the other family. A rank that has only one of the two has no figure: it would be too low, and a counter that falls when
// the other is not there once looks like a restart.
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

// merge makes one figure of the samples of a rank. One that is no number makes a rank's figure none: a sum without it would be
// too low, and a counter would seem to have fallen.
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

// model is what the row's first sample calls the model.
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

// cut makes a label value of replayd's own from one of a page.
func cut(s string) string {
	if len(s) > maxLabel {
		s = s[:maxLabel]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
