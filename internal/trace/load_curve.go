package trace

import (
	"time"
)

// Curve is a trace's load over its own time, in at most 240 bins. The first bin starts at offset 0; the last one
// contains the last row. Without timestamps there are no bins.
type Curve struct {
	Bin                                 time.Duration // width of a bin: 2ⁿ s, at least 1/128 s
	Requests, InputTokens, OutputTokens []int64       // per bin, counted as in Requests, Input and Output of Stats
}

const (
	curveBins = 240
	narrowest = int64(time.Second) / 128 // short traces have a curve too; long ones have bins of whole seconds
)

// A curve builds a Curve in one pass over a trace of unknown length. If a row lies beyond the last bin, the bins are
// merged in pairs, which doubles their width. The zero value has no rows.
type curve struct {
	width int64 // of a bin, nanoseconds
	bins  [curveBins]load
	used  int // number of bins up to the last one with a row
}

type load struct{ requests, input, output int64 }

func (c *curve) add(r *Record, offset int64) {
	if c.width == 0 {
		c.width = narrowest
	}
	for offset/c.width >= curveBins {
		c.widen()
	}
	i := int(offset / c.width)
	c.bins[i].requests++
	c.bins[i].input += int64(r.InputTokens)
	c.bins[i].output += int64(r.OutputTokens)
	c.used = max(c.used, i+1)
}

func (c *curve) widen() {
	for i := range curveBins / 2 {
		a, b := c.bins[2*i], c.bins[2*i+1]
		c.bins[i] = load{a.requests + b.requests, a.input + b.input, a.output + b.output}
	}
	clear(c.bins[curveBins/2:])
	c.width *= 2
	c.used = (c.used + 1) / 2
}

func (c *curve) curve() Curve {
	out := Curve{Bin: time.Duration(c.width)}
	for _, l := range c.bins[:c.used] {
		out.Requests = append(out.Requests, l.requests)
		out.InputTokens = append(out.InputTokens, l.input)
		out.OutputTokens = append(out.OutputTokens, l.output)
	}
	return out
}
