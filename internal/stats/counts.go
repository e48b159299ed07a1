package stats

import "math"

// Counts counts each value from 0 to MaxTokens by itself, in pages that exist only where values fall.
type Counts struct {
	pages [][]uint32
	sum   int64
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
	c.sum += int64(v)
}

// Summary describes the values counted. Their sum is exact, so the mean is rounded once.
func (c *Counts) Summary() Summary {
	w := c.Weighted()
	s := w.Summary()
	if s.Count == 0 {
		return s
	}
	s.Sum, s.Mean = c.sum, float64(c.sum)/float64(s.Count)
	squares := 0.0
	for _, v := range w {
		squares += float64(v.n) * (v.value - s.Mean) * (v.value - s.Mean)
	}
	s.StdDev = math.Sqrt(squares / float64(s.Count))
	return s
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
