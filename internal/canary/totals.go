package canary

import (
	"maps"
	"slices"
	"sync"
)

// Counters count what all comparisons of one name have added in this process: over epochs, and over reloads that put one comparison in the place of
// another. So they never fall, also while both add. They are no evidence: no snapshot has them. They are safe for concurrent use.
type Counters struct {
	mu     sync.Mutex
	totals Totals
}

// NewCounters returns counters at 0.
func NewCounters() *Counters {
	t := Totals{Skipped: map[Skip]int64{}, Metrics: make([]MetricTotals, metrics)}
	for m := range t.Metrics {
		t.Metrics[m].Changes = map[Direction]int64{}
	}
	return &Counters{totals: t}
}

// Totals returns the present counts.
func (c *Counters) Totals() Totals {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.totals
	t.Skipped, t.Metrics = maps.Clone(t.Skipped), slices.Clone(t.Metrics)
	for m := range t.Metrics {
		t.Metrics[m].Changes = maps.Clone(t.Metrics[m].Changes)
	}
	return t
}

func (c *Counters) count(add func(*Totals)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	add(&c.totals)
}

// Totals are the counts of Counters.
type Totals struct {
	Account
	Skipped map[Skip]int64 // blocks without bits for latencies
	Metrics []MetricTotals // by Metric
	Answers AnswerTotals
}

// An Account says what has become of all rows of a comparison. Pairs that were due are the judged ones, the void ones and those that are open.
type Account struct {
	Due      int64 // pairs of which a row came due on either side
	Pairs    Pairs
	Requests [2]Requests // of each side
}

// Open is the number of pairs that have not ended.
func (a *Account) Open() int64 { return a.Due - a.Pairs.Judged - a.Pairs.Void }

// Requests are the rows that came due on a side and have ended there.
type Requests struct {
	Sent   int64 `json:"sent"` // written: the server may have them in its log
	Unsent int64 `json:"not_sent"`
}

// MetricTotals are those of a metric.
type MetricTotals struct {
	// Blocks by value: against the tolerance of a latency, and against 0 for the difference of a share.
	Above   int64
	At      int64
	Below   int64
	Changes map[Direction]int64 // of a watch
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
