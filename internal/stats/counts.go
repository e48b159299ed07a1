package stats

import (
	"math"
)

// A CountSummary describes values. Percentile defines its percentiles.
type CountSummary struct {
	Count, Sum              int64
	Mean, StdDev            float64 // StdDev is the population's
	P25, P50, P75, P90, P99 float64
	Min, Max                int
}

// Counts counts each value from 0 to MaxTokens by itself, in pages that exist only where values fall.
type Counts struct {
	pages    [][]uint32
	N, sum   int64
	min, max int
}

const pageValues = 4096

// Add counts a value, which must be at least 0.
func (c *Counts) Add(v int) {
	page := v / pageValues
	for page >= len(c.pages) {
		c.pages = append(c.pages, nil)
	}
	if c.pages[page] == nil {
		c.pages[page] = make([]uint32, pageValues)
	}
	c.pages[page][v%pageValues]++
	if c.N == 0 || v < c.min {
		c.min = v
	}
	c.max = max(c.max, v)
	c.N++
	c.sum += int64(v)
}

// Summary describes the values counted.
func (c *Counts) Summary() CountSummary {
	if c.N == 0 {
		return CountSummary{}
	}
	return CountSummary{
		Count: c.N, Sum: c.sum, Mean: float64(c.sum) / float64(c.N), Min: c.min, Max: c.max,
		StdDev: c.deviation(),
		P25:    c.percentile(25), P50: c.percentile(50), P75: c.percentile(75), P90: c.percentile(90), P99: c.percentile(99),
	}
}

// deviation makes a second pass over the values: a sum of squared lengths would not fit into 64 bits.
func (c *Counts) deviation() float64 {
	var squares float64
	mean := float64(c.sum) / float64(c.N)
	for i, page := range c.pages {
		for v, count := range page {
			distance := float64(i*pageValues+v) - mean
			squares += float64(count) * distance * distance
		}
	}
	return math.Sqrt(squares / float64(c.N))
}

// Weighted lists the values that occur, each with its count.
func (c *Counts) Weighted() Weighted {
	var w Weighted
	for i, page := range c.pages {
		for v, count := range page {
			if count > 0 {
				w = append(w, Weight{float64(i*pageValues + v), int64(count)})
			}
		}
	}
	return w
}

func (c *Counts) percentile(p float64) float64 { return Percentile(p, c.N, c.at) }

// at returns the value of the given rank, from 0.
func (c *Counts) at(rank int64) float64 {
	for i, page := range c.pages {
		for v, count := range page {
			if rank -= int64(count); rank < 0 {
				return float64(i*pageValues + v)
			}
		}
	}
	return float64(c.max)
}

// Between counts the values v with from ≤ v < below. A below of 0 is no bound.
func (c *Counts) Between(from, below int) (n int64) {
	for i, page := range c.pages {
		for v, count := range page {
			if v += i * pageValues; v >= from && (v < below || below == 0) {
				n += int64(count)
			}
		}
	}
	return n
}
