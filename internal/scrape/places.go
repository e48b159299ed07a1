package scrape

import (
	"strconv"
	"time"

	dto "github.com/prometheus/client_model/go"

	"replayd/internal/bounded"
)

// Bounds of the label values of engines over the life of the process. Real ones change with a new release of the engine or of the model.
const (
	maxModels      = 32
	forgetValue    = 24 * time.Hour
	maxAddresses   = 256 // of a target: four times those that are scraped at once
	forgetAddress  = 6 * time.Hour
	maxBoundDigits = 24
)

type labelValues = bounded.Set[struct{}]

// places are the label values that an engine's pages have on /metrics.
type places struct {
	ranks, models *labelValues
	bounds        map[*Quantity]*labelValues // of histograms
}

// show returns the part of r that has a place. Ranks without one are left out: a sum over them would fall and jump with each that comes and
// goes. So are buckets: the others of a histogram are right without them.
func (p *places) show(r *Reading, now time.Time, over *bounded.Overflow) *Reading {
	if p.ranks == nil {
		p.ranks, p.models = bounded.NewSet[struct{}](maxRanks, forgetValue), bounded.NewSet[struct{}](maxModels, forgetValue)
		p.bounds = map[*Quantity]*labelValues{}
	}
	shown := &Reading{Engine: r.Engine, Model: r.Model, Figures: make([]Figure, 0, len(r.Figures))}
	if r.Model != "" && p.models.See(string(r.Model), now) == nil {
		shown.Model = bounded.Other
		over.Add(bounded.ModelName, 1)
	}
	ranks, buckets := 0, 0
	for _, f := range r.Figures {
		if f.Rank != "" && p.ranks.See(string(f.Rank), now) == nil {
			ranks++
			continue
		}
		if f.Buckets != nil {
			of := p.bounds[f.Quantity]
			if of == nil {
				of = bounded.NewSet[struct{}](maxBuckets, forgetValue)
				p.bounds[f.Quantity] = of
			}
			kept := &dto.Histogram{SampleCount: f.Buckets.SampleCount, SampleSum: f.Buckets.SampleSum}
			for _, b := range f.Buckets.Bucket {
				var digits [maxBoundDigits]byte
				if of.See(string(strconv.AppendFloat(digits[:0], b.GetUpperBound(), 'g', -1, 64)), now) != nil {
					kept.Bucket = append(kept.Bucket, b)
				}
			}
			buckets += len(f.Buckets.Bucket) - len(kept.Bucket)
			f.Buckets = kept
		}
		shown.Figures = append(shown.Figures, f)
	}
	over.Add(bounded.Rank, ranks)
	over.Add(bounded.Bound, buckets)
	return shown
}
