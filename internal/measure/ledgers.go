package measure

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// A LedgerLine is what a file of records has of one workload between its records: {"ledger":{…}}.
type LedgerLine struct {
	Time     int64  `json:"time_ns"`  // when it was so; Unix time in ns, like began_ns
	Began    int64  `json:"began_ns"` // when the counts were 0: it tells the runs of one file apart
	Workload string `json:"workload"`
	Target   string `json:"target"`
	Shard    string `json:"shard"` // which of how many: 0/2
	SLO      string `json:"slo"`   // as ParseSLO reads it
	Ledger
}

// Ledgers are those of all workloads on the page, by name and target. What a workload counted under several names of its model is
// one. Two workloads that count in the same series, as through a reload, have one between them.
func (m *Meter) Ledgers() []LedgerLine {
	m.mu.Lock()
	var live []*series
	current := map[*series]bool{}
	for _, s := range m.series {
		if s.users > 0 {
			live = append(live, s)
			current[s] = s.current > 0
		}
	}
	m.mu.Unlock()
	slices.SortFunc(live, func(a, b *series) int { return slices.Compare(a.values, b.values) })
	var all []LedgerLine
	for _, s := range live {
		line := LedgerLine{Began: s.began.UnixNano(), Workload: s.labels.Workload, Target: s.labels.Target}
		now := s.counts()
		line.Shard, line.SLO = fmt.Sprintf("%d/%d", now.shard.Index, now.shard.Of), now.slo.String()
		if n := len(all) - 1; n >= 0 && all[n].Workload == line.Workload && all[n].Target == line.Target {
			line.Began, line.Ledger = min(line.Began, all[n].Began), all[n].Ledger
			if !current[s] {
				line.Shard, line.SLO = all[n].Shard, all[n].SLO
			}
			all = all[:n]
		}
		line.Ledger = line.Add(now.ledger())
		all = append(all, line)
	}
	return all
}

// Ledger is the sum over all workloads on the page.
func (m *Meter) Ledger() (sum Ledger) {
	for _, l := range m.Ledgers() {
		sum = sum.Add(l.Ledger)
	}
	return sum
}

// AppendLedgers appends a line for each workload; it is a Sink's Ledgers.
func (m *Meter) AppendLedgers(b []byte) []byte {
	now := time.Now().UnixNano()
	for _, l := range m.Ledgers() {
		l.Time = now
		line, err := json.Marshal(struct {
			Ledger LedgerLine `json:"ledger"`
		}{l})
		if err != nil {
			panic(err) // it has nothing that is not JSON
		}
		b = append(append(b, line...), '\n')
	}
	return b
}
