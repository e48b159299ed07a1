package trace

import (
	"math"

	"replayd/internal/stats"
)

// A Distribution describes values, with percentiles as stats has them.
type Distribution struct {
	Count, Sum              int64
	Mean, StdDev            float64 // the population's
	P25, P50, P75, P90, P99 float64
	Min, Max                int
}

// counts counts values of 0 to MaxTokens, each by itself, in pages that exist only where values fall.
type counts struct {
	pages    [][]uint32
	n, sum   int64
	min, max int
}

const pageValues = 4096

func (c *counts) add(v int) {
	page := v / pageValues
	for page >= len(c.pages) {
		c.pages = append(c.pages, nil)
	}
	if c.pages[page] == nil {
		c.pages[page] = make([]uint32, pageValues)
	}
	c.pages[page][v%pageValues]++
	if c.n == 0 || v < c.min {
		c.min = v
	}
	c.max = max(c.max, v)
	c.n++
	c.sum += int64(v)
}

func (c *counts) distribution() Distribution {
	if c.n == 0 {
		return Distribution{}
	}
	return Distribution{
		Count: c.n, Sum: c.sum, Mean: float64(c.sum) / float64(c.n), Min: c.min, Max: c.max,
		StdDev: c.deviation(),
		P25:    c.percentile(25), P50: c.percentile(50), P75: c.percentile(75), P90: c.percentile(90), P99: c.percentile(99),
	}
}

// deviation goes through the values once more: a sum of squares of lengths would leave 64 bits behind.
func (c *counts) deviation() float64 {
	var squares float64
	mean := float64(c.sum) / float64(c.n)
	for i, page := range c.pages {
		for v, count := range page {
			distance := float64(i*pageValues+v) - mean
			squares += float64(count) * distance * distance
		}
	}
	return math.Sqrt(squares / float64(c.n))
}

// weighted lists the values that occur, each with how often.
func (c *counts) weighted() weighted {
	var w weighted
	for i, page := range c.pages {
		for v, count := range page {
			if count > 0 {
				w = append(w, weight{float64(i*pageValues + v), int64(count)})
			}
		}
	}
	return w
}

func (c *counts) percentile(p float64) float64 { return stats.Percentile(p, c.n, c.at) }

// at returns the value of the given rank, from 0.
func (c *counts) at(rank int64) float64 {
	for i, page := range c.pages {
		for v, count := range page {
			if rank -= int64(count); rank < 0 {
				return float64(i*pageValues + v)
			}
		}
	}
	return float64(c.max)
}

// between counts the values from one on to below another; 0 means to the last.
func (c *counts) between(from, below int) (n int64) {
	for i, page := range c.pages {
		for v, count := range page {
			if v += i * pageValues; v >= from && (v < below || below == 0) {
				n += int64(count)
			}
		}
	}
	return n
}
