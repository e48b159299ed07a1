package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"replayd/internal/canary"
)

// A count is the verdicts of a judge.
type count struct {
	n, fails, passes int
	metrics          map[string]int // that failed, at any time
	minutes          []float64      // of the first verdicts; +Inf: there was none
	failed           []float64      // of the first fails
}

func newCount(all [][]said, judge int) count {
	c := count{metrics: map[string]int{}}
	for _, results := range all {
		s := results[judge]
		c.n++
		if !math.IsNaN(s.failed) {
			c.metrics[s.metric.String()]++
		}
		switch s.verdict {
		case canary.Fail:
			c.fails++
		case canary.Pass:
			c.passes++
		case canary.Undecided:
		}
		c.minutes, c.failed = append(c.minutes, orNever(s.at)), append(c.failed, orNever(s.failed))
	}
	return c
}

func orNever(minutes float64) float64 {
	if math.IsNaN(minutes) {
		return math.Inf(1)
	}
	return minutes
}

func (c *count) byMetric() string {
	if len(c.metrics) == 0 {
		return ""
	}
	return " " + strings.Trim(fmt.Sprint(c.metrics), "map[]")
}

// middle is a median of minutes.
func middle(minutes []float64) string {
	slices.Sort(minutes)
	if m := minutes[len(minutes)/2]; !math.IsInf(m, 1) {
		return fmt.Sprintf("%.0f", m)
	}
	return "–"
}

// within counts minutes.
func within(minutes []float64, most float64) (n int) {
	for _, m := range minutes {
		if m <= most {
			n++
		}
	}
	return n
}
