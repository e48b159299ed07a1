package measure

import "slices"

// Counts are what a workload has counted since its series were born, all true at one instant.
type Counts struct {
	Expected, Waiting, InFlight int64
	Outcomes                    map[Outcome]int64    // every outcome, zeros too
	Dropped                     map[DropReason]int64 // every reason, zeros too
	Retries, Goodput            int64
	PromptTokens, OutputTokens  int64 // of ok requests, as the server counts them
}

// Counts reads what /metrics would show now.
func (w *Workload) Counts() Counts {
	w.mu.Lock()
	defer w.mu.Unlock()
	var n counts
	for _, p := range w.parts { // one that ends between two of them is told a moment later
		p.s.change(func(c *counts) { n.sum(c) })
	}
	return Counts{
		Expected: n.expected, Waiting: n.waiting, InFlight: n.inFlight,
		Outcomes: byName(outcomes[:], n.finished[:]), Dropped: byName(dropReasons[:], n.dropped[:]),
		Retries: n.retries, Goodput: n.goodput,
		PromptTokens: n.tokens[0], OutputTokens: n.tokens[1],
	}
}

// sum adds what Counts tells.
func (c *counts) sum(other *counts) {
	c.expected, c.waiting, c.inFlight = c.expected+other.expected, c.waiting+other.waiting, c.inFlight+other.inFlight
	c.retries, c.goodput = c.retries+other.retries, c.goodput+other.goodput
	for i, v := range other.finished {
		c.finished[i] += v
	}
	for i, v := range other.dropped {
		c.dropped[i] += v
	}
	for i, v := range other.tokens {
		c.tokens[i] += v
	}
}

func byName[K comparable](names []K, n []int64) map[K]int64 {
	m := make(map[K]int64, len(names))
	for i, name := range names {
		m[name] = n[i]
	}
	return m
}

// Outcomes lists every outcome, ok first, in the order in which /metrics and pages show them.
func Outcomes() []Outcome { return slices.Clone(outcomes[:]) }

// DropReasons lists every reason for which a request is never sent.
func DropReasons() []DropReason { return slices.Clone(dropReasons[:]) }
