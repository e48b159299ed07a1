package trace

import "time"

// Curve is a trace's load over its own time, in at most 240 bins. The first bin starts at offset 0; the last one
// contains the last row. Without timestamps there are no bins.
type Curve struct {
	Bin                                 time.Duration // width of a bin: 2ⁿ s, at least 1/128 s
	Requests, InputTokens, OutputTokens []int64       // per bin, counted as in Requests, Input and Output of Stats
}

const (
	curveBins = 240
	narrowest = time.Second / 128 // short traces have a curve too; long ones have bins of whole seconds
)

// add counts a row. If it lies beyond the last bin, the bins are merged in pairs: the length of the trace is not known.
func (c *Curve) add(r *Record, offset time.Duration) {
	c.Bin = max(c.Bin, narrowest)
	for ; offset/c.Bin >= curveBins; c.Bin *= 2 {
		c.merge()
	}
	at := int(offset / c.Bin)
	for i, bins := range c.bins() {
		*bins = append(*bins, make([]int64, max(0, at+1-len(*bins)))...)
		(*bins)[at] += int64([...]int{1, r.InputTokens, r.OutputTokens}[i])
	}
}

func (c *Curve) merge() {
	for _, bins := range c.bins() {
		all := *bins
		for i, n := range all {
			if i%2 == 0 {
				all[i/2] = n
			} else {
				all[i/2] += n
			}
		}
		*bins = all[:(len(all)+1)/2]
	}
}

func (c *Curve) bins() [3]*[]int64 {
	return [...]*[]int64{&c.Requests, &c.InputTokens, &c.OutputTokens}
}
