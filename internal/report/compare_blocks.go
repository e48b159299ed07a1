package report

import (
	"fmt"
	"math"

	"replayd/internal/measure"
	"replayd/internal/number"
	"replayd/internal/result"
	"replayd/internal/stats"
)

// A run is cut into blocks of equal time, because requests that share a queue depend on each other: they are no units of evidence.
// There are at most so many, and none is shorter than the mean request, which would otherwise live through several. With fewer
// than fewestBlocks nothing is judged. docs/decisions/0021-blocks-of-time.md has the simulations.
const (
	mostBlocks   = 30
	fewestBlocks = 12
)

// tail is 1 − the confidence of all intervals on pages, and how often any verdict of a page may be wrong where runs are equal.
const tail = 0.05

// blocksOf is into how many blocks a run is cut: 1 where it is too short.
func blocksOf(l lookedAt) int {
	var lived float64
	for _, r := range l.ok {
		lived += float64(r.End-r.Start) / 1e9
	}
	n := int(min(mostBlocks, l.seconds*float64(len(l.ok))/lived))
	if lived == 0 || n < fewestBlocks {
		return 1
	}
	return n
}

// alike cuts runs into as many blocks as the one that has fewest, but for those that are too short.
func alike(all []lookedAt) {
	n := mostBlocks
	for _, l := range all {
		if l.blocks > 1 {
			n = min(n, l.blocks)
		}
	}
	for i := range all {
		all[i].blocks = min(n, all[i].blocks)
	}
}

// unit says what the blocks of a run are.
func (l lookedAt) unit() string {
	switch {
	case len(l.ok) == 0:
		return "no request ended ok"
	case l.blocks < fewestBlocks:
		return fmt.Sprintf("too short: it lasted less than %d times its mean latency", fewestBlocks)
	}
	return fmt.Sprintf("%d blocks of %s each", l.blocks, number.Value(l.seconds/float64(l.blocks), "s"))
}

// cut sums values and their weights by block. A row whose value is not a number counts nowhere.
func (l lookedAt) cut(rows []result.Row, at func(result.Row) int64, of func(result.Row) (value, weight float64)) []stats.Block {
	blocks := make([]stats.Block, l.blocks)
	for _, r := range rows {
		value, weight := of(r)
		if math.IsNaN(value) || math.IsNaN(weight) {
			continue
		}
		block := 0
		if l.seconds > 0 {
			block = min(l.blocks-1, max(0, int(l.at(at(r))/l.seconds*float64(l.blocks))))
		}
		b := &blocks[block]
		b.Sum, b.Weight = b.Sum+value, b.Weight+weight
	}
	return blocks
}

func started(r result.Row) int64 { return r.Start }

// mean is that of a quantity of ok requests.
func (l lookedAt) mean(value func(result.Row) float64) stats.Estimate {
	return stats.NewEstimate(l.cut(l.ok, started, func(r result.Row) (float64, float64) { return value(r), 1 }))
}

// percentile is that of a quantity of some requests, whose distribution is d.
func (l lookedAt) percentile(rows []result.Row, value func(result.Row) float64, d stats.Distribution, p float64) stats.Estimate {
	most := d.Percentile(p)
	return stats.PercentileEstimate(d, p, l.cut(rows, started, func(r result.Row) (float64, float64) {
		switch v := value(r); {
		case math.IsNaN(v):
			return v, 0
		case v <= most:
			return 1, 1
		}
		return 0, 1
	}))
}

// rate is an amount of ok requests per second, from the first start to the last end of them.
func (l lookedAt) rate(amount func(result.Row) float64) stats.Estimate {
	l.zero, l.seconds = l.figures.Start, l.figures.Seconds()
	blocks := l.cut(l.ok, func(r result.Row) int64 { return r.End }, func(r result.Row) (float64, float64) { return amount(r), 0 })
	for i := range blocks {
		blocks[i].Weight = l.seconds / float64(len(blocks))
	}
	return stats.NewEstimate(blocks)
}

// share is that of requests with an outcome among those that were sent.
func (l lookedAt) share(of func(measure.Outcome) bool) stats.Estimate {
	return stats.NewEstimate(l.cut(l.rows, started, func(r result.Row) (float64, float64) {
		if of(r.Outcome) {
			return 1, 1
		}
		return 0, 1
	}))
}
