package scrape

import (
	"cmp"
	"math"
	"slices"

	"replayd/internal/limits"
	"replayd/internal/secret"
)

// Read translates p to the vocabulary. The engine is the one whose rows find the most quantities: a page can hold the
// metrics of several engines, for instance a Dynamo worker with its own and those of its engine. If no row finds any,
// the engine is told, which Recognizer derived from the names on the page. If that is of another role, only the user's
// rows count. A quantity found by the user's rows replaces the engine's.
func (v *Vocabulary) Read(p *Page, told string) *Reading {
	p.unwrap()
	best := &Reading{Engine: told, gaps: map[*Quantity]bool{}, unknown: guarded{}}
	most, names := 0, v.engines
	if told != "" && v.rows[told] == nil {
		best.Engine, names = "", nil
	}
	var refused map[secret.Text]error
	for _, engine := range names {
		p.refused = nil
		r, found := readRows(p, v.rows[engine])
		if len(found) > most {
			most, best, refused = len(found), r, p.refused
			best.Engine = engine
		} else if most == 0 && engine == told {
			refused = p.refused
		}
	}
	p.drop(refused)
	p.refused = nil
	r, found := readRows(p, v.user)
	p.drop(p.refused)
	if len(found) == 0 {
		return best
	}
	best.Figures = slices.DeleteFunc(best.Figures, func(f Figure) bool { return found[f.Quantity] })
	best.Figures = append(best.Figures, r.Figures...)
	for q := range found {
		best.gaps[q], best.unknown[q] = r.gaps[q], r.unknown[q]
	}
	best.Model = cmp.Or(best.Model, r.Model)
	best.Engine = cmp.Or(best.Engine, "custom")
	return best
}

// readRows returns the figures that rows find on a page. Of several rows for one quantity, the first that finds figures
// counts.
func readRows(p *Page, rows []Row) (r *Reading, found map[*Quantity]bool) {
	r, found = &Reading{gaps: map[*Quantity]bool{}, unknown: guarded{}}, map[*Quantity]bool{}
	for i := range rows {
		row := &rows[i]
		q := quantity(row.Quantity)
		if found[q] {
			continue
		}
		var got []Figure
		var gap bool
		switch {
		case row.isDamaged(p): // nor does another row give it, which may see less
			found[q], r.gaps[q] = true, true
			continue
		case row.kind() == Histogram && row.Take == "":
			got = row.histograms(p)
		default:
			got, gap = row.values(p)
		}
		if gap {
			r.gaps[q] = true
		}
		got = slices.DeleteFunc(got, func(f Figure) bool {
			if !math.IsNaN(f.Value) {
				return false
			}
			r.gaps[q], r.unknown[q] = true, append(r.unknown[q], f.Rank)
			return true
		})
		if len(got) == 0 {
			continue
		}
		found[q] = true
		r.Figures = append(r.Figures, got...)
		if r.Model == "" {
			r.Model = row.model(p)
		}
	}
	return r, found
}

// guarded are ranks by quantity.
type guarded map[*Quantity][]secret.Text

// ranks returns the ranks of the figures that a guard uses, and where one of the page before is missing says so. A figure
// that is not on the page keeps the ranks that it had.
func (r *Reading) ranks(before guarded) guarded {
	now := guarded{waiting: slices.Clone(r.unknown[waiting]), kvCacheUsage: slices.Clone(r.unknown[kvCacheUsage])}
	for _, f := range r.Figures {
		if f.Quantity == waiting || f.Quantity == kvCacheUsage {
			now[f.Quantity] = append(now[f.Quantity], f.Rank)
		}
	}
	for q, ranks := range before {
		if now[q] == nil {
			now[q] = ranks
		} else if slices.ContainsFunc(ranks, func(rank secret.Text) bool { return !slices.Contains(now[q], rank) }) {
			r.gaps[q] = true
		}
	}
	return now
}

// load returns the waiting requests of all ranks together and the highest KV-cache usage. A figure that is missing for
// some ranks is NaN.
func (r *Reading) load() limits.Load {
	l := limits.Unknown()
	for _, f := range r.Figures {
		switch {
		case r.gaps[f.Quantity]:
		case f.Quantity == waiting:
			if math.IsNaN(l.Waiting) {
				l.Waiting = 0
			}
			l.Waiting += f.Value
		case f.Quantity == kvCacheUsage:
			if math.IsNaN(l.KVCacheUsage) || f.Value > l.KVCacheUsage {
				l.KVCacheUsage = f.Value
			}
		}
	}
	return l
}

// counts reports whether the page counts requests that have ended, or their tokens.
func (r *Reading) counts() bool {
	return slices.ContainsFunc(r.Figures, func(f Figure) bool { return f.Quantity == generationTokens || f.Quantity == finished })
}
