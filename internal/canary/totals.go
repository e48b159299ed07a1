package canary

import (
	"maps"
	"slices"
)

// Totals are counters that no restart of the comparison sets back.
type Totals struct {
	Pairs   Pairs          `json:"pairs"`
	Skipped map[Skip]int64 `json:"skipped"` // blocks without bits for latencies
	Metrics []MetricTotals `json:"metrics"` // by Metric
}

// MetricTotals are those of a metric.
type MetricTotals struct {
	// Blocks by value: against the tolerance of a latency, and against 0 for the difference of a share.
	Above   int64               `json:"above"`
	At      int64               `json:"at"`
	Below   int64               `json:"below"`
	Changes map[Direction]int64 `json:"changes"` // of a watch
}

func newTotals() Totals {
	t := Totals{Skipped: map[Skip]int64{}, Metrics: make([]MetricTotals, metrics)}
	for _, why := range Skips {
		t.Skipped[why] = 0
	}
	for m := range t.Metrics {
		t.Metrics[m].Changes = map[Direction]int64{}
		for _, d := range Metric(m).Directions() {
			t.Metrics[m].Changes[d] = 0
		}
	}
	return t
}

func (t *Totals) clone() Totals {
	c := *t
	c.Skipped, c.Metrics = maps.Clone(t.Skipped), slices.Clone(t.Metrics)
	for m := range c.Metrics {
		c.Metrics[m].Changes = maps.Clone(t.Metrics[m].Changes)
	}
	return c
}

// add counts a block and the change that it revealed.
func (t *MetricTotals) add(value, bound float64, change Direction) {
	switch {
	case value > bound:
		t.Above++
	case value < bound:
		t.Below++
	default:
		t.At++
	}
	if change != "" {
		t.Changes[change]++
	}
}
