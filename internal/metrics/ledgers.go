package metrics

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"replayd/internal/measure"
)

// Ledger returns the counts of the workload as /metrics shows them, summed over all names of its model.
func (w *Workload) Ledger() measure.Ledger {
	w.mu.Lock()
	defer w.mu.Unlock()
	var l measure.Ledger
	for _, p := range w.parts { // a request that ends meanwhile may be counted in the next ledger
		n := p.s.counts()
		l = l.Add(n.ledger())
	}
	return l
}

func (c *counts) ledger() measure.Ledger {
	l := measure.Ledger{
		Expected: c.expected, InFlight: c.open[inFlight], Waiting: c.open[waiting],
		Outcomes: byName(allOutcomes, c.finished[:]), Dropped: byName(allDropReasons, c.dropped[:]),
		Good: c.good, Eligible: c.eligible, Unjudged: c.unjudged, Sessions: c.sessions.ledger(c.open[inProgress]),
		Retries: c.retries, PromptTokens: c.tokens[0], OutputTokens: c.tokens[1], Broken: map[string]int64{},
	}
	for i, n := range c.violations[:measure.SLOError] {
		if n > 0 {
			l.Broken[measure.SLOName(i)] = n
		}
	}
	l.Filtered = l.Dropped[measure.Filtered]
	delete(l.Dropped, measure.Filtered)
	if c.past != nil {
		return l.Add(*c.past)
	}
	return l
}

// byName returns the non-zero counts.
func byName[K comparable](names []K, n []int64) map[K]int64 {
	m := map[K]int64{}
	for i, name := range names {
		if n[i] != 0 {
			m[name] = n[i]
		}
	}
	return m
}

// Ledgers returns the ledgers of all workloads on the page, sorted by name and target. The counts of a workload under
// several model names are added up. Two workloads that share series, for instance during a reload, share one ledger.
func (m *Meter) Ledgers() []measure.LedgerLine {
	m.mu.Lock()
	defer m.mu.Unlock()
	var live []*series
	for _, s := range m.series {
		if s.users > 0 {
			live = append(live, s)
		}
	}
	slices.SortFunc(live, func(a, b *series) int { return slices.Compare(a.values, b.values) })
	var all []measure.LedgerLine
	for _, s := range live {
		line := measure.LedgerLine{Began: s.began.UnixNano(), Workload: s.labels.Workload, Target: s.labels.Target}
		now := s.counts()
		line.Shard, line.SLO = fmt.Sprintf("%d/%d", now.options.Shard.Index, now.options.Shard.Of), now.options.SLO.String()
		if n := len(all) - 1; n >= 0 && all[n].Workload == line.Workload && all[n].Target == line.Target {
			line.Began, line.Ledger = min(line.Began, all[n].Began), all[n].Ledger
			if s.current == 0 {
				line.Shard, line.SLO = all[n].Shard, all[n].SLO
			}
			all = all[:n]
		}
		line.Ledger = line.Add(now.ledger())
		all = append(all, line)
	}
	return all
}

// Ledger returns the sum over all workloads on the page.
func (m *Meter) Ledger() (sum measure.Ledger) {
	for _, l := range m.Ledgers() {
		sum = sum.Add(l.Ledger)
	}
	return sum
}

// AppendLedgers appends a line for each workload, for Sink.Ledgers.
func (m *Meter) AppendLedgers(b []byte) []byte {
	now := time.Now().UnixNano()
	for _, l := range m.Ledgers() {
		l.Version, l.Time = measure.RecordsVersion, now
		line, err := json.Marshal(struct {
			Ledger measure.LedgerLine `json:"ledger"`
		}{l})
		if err != nil {
			panic(err) // a LedgerLine always marshals
		}
		b = append(append(b, line...), '\n')
	}
	return b
}
