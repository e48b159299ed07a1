package scrape

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// Limits of what one page may put on replayd's own.
const (
	maxRanks   = 64  // data-parallel ranks
	maxBuckets = 200 // of a histogram
	maxLabel   = 128 // bytes of a label value
)

// A Reading is a page in the vocabulary.
type Reading struct {
	Engine  string // empty: none that the vocabulary knows
	Model   string // the page's first model_name (or model) label; empty: it has none
	Figures []Figure
}

// A Figure is one quantity of one rank.
type Figure struct {
	Quantity *Quantity
	Rank     string // empty: the engine has no ranks
	Value    float64
	Buckets  *Buckets // of a histogram
}

// Read maps a page of an engine that its names told, if they did. Else, and where that has figures, the engine is the one that most quantities are found of, so that a page that holds several (a worker
// of Dynamo has its own and its engine's) goes to the one that says most.
func (v *Vocabulary) Read(p *Page, told string) Reading {
	best := Reading{Engine: told}
	most := 0
	for _, engine := range v.engines {
		figures, found, model := read(p, v.rows[engine])
		if len(found) > most {
			most, best = len(found), Reading{Engine: engine, Model: model, Figures: figures}
		}
	}
	mine := v.user
	if best.Engine != "" { // rows for another engine are not for this page
		mine = slices.DeleteFunc(slices.Clone(mine), func(r Row) bool { return r.Engine != "" && v.rows[r.Engine] != nil && r.Engine != best.Engine })
	}
	figures, found, model := read(p, mine)
	if len(found) == 0 {
		return best
	}
	best.Figures = slices.DeleteFunc(best.Figures, func(f Figure) bool { return found[f.Quantity] })
	best.Figures = append(best.Figures, figures...)
	if best.Engine == "" {
		best.Engine = "custom"
	}
	for _, r := range mine {
		if r.Engine != "" && found[quantity(r.Quantity)] {
			best.Engine = r.Engine
			break
		}
	}
	best.Model = cmp.Or(best.Model, model)
	return best
}

// read gives the figures that rows find on a page: of several for one quantity those of the first that finds any.
func read(p *Page, rows []Row) (figures []Figure, found map[*Quantity]bool, model string) {
	found = map[*Quantity]bool{}
	for _, row := range rows {
		q := quantity(row.Quantity)
		if found[q] {
			continue
		}
		var got []Figure
		if row.kind() == Histogram && row.Take == "" {
			got = row.histograms(p)
		} else {
			got = row.values(p)
		}
		if len(got) == 0 {
			continue
		}
		found[q] = true
		figures = append(figures, got...)
		if model == "" {
			model = row.model(p)
		}
	}
	return figures, found, model
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

// values gives the row's counter or gauge by rank, in the order of the page.
func (r Row) values(p *Page) []Figure {
	var list []Sample
	for _, name := range r.names() {
		if list = r.samples(p, name); len(list) > 0 {
			break
		}
	}
	merged := r.merge(list)
	if r.Less != "" {
		for _, less := range r.merge(Row{Rank: r.Rank}.samples(p, r.Less)) {
			for i := range merged {
				if merged[i].Rank == less.Rank {
					// The two were not read at the same instant of the engine's.
					merged[i].Value = max(0, merged[i].Value-less.Value)
				}
			}
		}
	}
	return merged
}

func (r Row) merge(list []Sample) []Figure {
	var merged []Figure
	q := quantity(r.Quantity)
	for _, s := range list {
		value := s.Value * r.scale()
		if math.IsNaN(value) || math.IsInf(value, 0) || q.Kind == Counter && value < 0 {
			continue // it says nothing, and a guard must not believe it
		}
		rank := r.rank(s)
		i := slices.IndexFunc(merged, func(f Figure) bool { return f.Rank == rank })
		switch {
		case i < 0 && len(merged) == maxRanks:
		case i < 0:
			merged = append(merged, Figure{Quantity: q, Rank: rank, Value: value})
		case r.Merge == "max":
			merged[i].Value = max(merged[i].Value, value)
		default:
			merged[i].Value += value
		}
	}
	return merged
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
