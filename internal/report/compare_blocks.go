package report

import (
	"fmt"
	"math"

	"replayd/internal/measure"
	"replayd/internal/number"
	"replayd/internal/result"
	"replayd/internal/stats"
)

// tail is 1 − the confidence level of all intervals on pages. It is also the chance that a page of equal runs has any
// wrong verdict.
const tail = 0.05

// alike gives all runs the number of blocks of the run with the fewest. A run that is too short keeps its single block.
func alike(all []runData) {
	n := maxBlocks
	for _, l := range all {
		if l.blocks > 1 {
			n = min(n, l.blocks)
		}
	}
	for i := range all {
		all[i].blocks = min(n, all[i].blocks)
	}
}

func (l runData) unit() string {
	switch {
	case len(l.ok) == 0:
		return "no request ended ok"
	case l.blocks < fewestBlocks:
		return fmt.Sprintf("lasted %s, less than %d mean latencies (%s)", number.Value(l.seconds, "s"), fewestBlocks, number.Value(fewestBlocks*l.meanLatency(), "s"))
	}
	return fmt.Sprintf("%d blocks of %s each", l.blocks, number.Value(l.seconds/float64(l.blocks), "s"))
}

// cut sums values and their weights by block. It skips rows whose value or weight is NaN.
func (l runData) cut(rows []result.Row, at func(result.Row) int64,
	of func(result.Row) (value, weight float64),
) []stats.Block {
	blocks := make([]stats.Block, l.blocks)
	for _, r := range rows {
		value, weight := of(r)
		if math.IsNaN(value) || math.IsNaN(weight) {
			continue
		}
		b := &blocks[l.block(at(r))]
		b.Sum, b.Weight = b.Sum+value, b.Weight+weight
	}
	return blocks
}

func (l runData) block(instant int64) int {
	if l.seconds == 0 {
		return 0
	}
	return min(l.blocks-1, max(0, int(l.at(instant)/l.seconds*float64(l.blocks))))
}

func started(r result.Row) int64 { return r.Start }

func (l runData) mean(q measure.Quantity) stats.Estimate {
	return stats.NewEstimate(l.cut(l.ok, started, func(r result.Row) (float64, float64) { return r.Value(q), 1 }))
}

// percentile estimates the percentile p of a quantity over rows; d is the distribution of that quantity.
func (l runData) percentile(rows []result.Row, q measure.Quantity, d stats.Distribution, p float64) stats.Estimate {
	most := d.Percentile(p)
	return stats.PercentileEstimate(d, p, l.cut(rows, started, func(r result.Row) (float64, float64) {
		switch v := r.Value(q); {
		case math.IsNaN(v):
			return v, 0
		case v <= most:
			return 1, 1
		}
		return 0, 1
	}))
}

// rate estimates an amount per second over ok requests, from their first start to their last end.
func (l runData) rate(amount func(result.Row) float64) stats.Estimate {
	l.zero, l.seconds = l.figures.Start, l.figures.Seconds()
	blocks := l.cut(l.ok, func(r result.Row) int64 { return r.End }, func(r result.Row) (float64, float64) { return amount(r), 0 })
	for i := range blocks {
		blocks[i].Weight = l.seconds / float64(len(blocks))
	}
	return stats.NewEstimate(blocks)
}

func (l runData) share(of func(measure.Outcome) bool) stats.Estimate {
	return stats.NewEstimate(l.cut(l.rows, started, func(r result.Row) (float64, float64) {
		if of(r.Outcome) {
			return 1, 1
		}
		return 0, 1
	}))
}
