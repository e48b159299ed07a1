package trace

import (
	"time"
)

// Curve is a trace's load over its own time: what is due in each of at most 240 bins, the first from offset 0 on, the last
// one that of the last row. Without timestamps there are none.
type Curve struct {
	Bin                                 time.Duration // their width: 2ⁿ s, from 1/128 s on
	Requests, InputTokens, OutputTokens []int64       // as in Requests, Input and Output of Stats
}

const (
	curveBins = 240
	narrowest = int64(time.Second) / 128 // short traces have a curve too; long ones have bins of whole seconds
)

// A curve fills a Curve in one pass, however long the trace turns out to be: where a row lies beyond the last bin, all
// become twice as wide, two and two of them one. Its zero value has no rows.
type curve struct {
	width int64 // of a bin, nanoseconds
	bins  [curveBins]load
	used  int // bins up to the last one that has a row
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
