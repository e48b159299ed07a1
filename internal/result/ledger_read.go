package result

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"replayd/internal/measure"
)

// A counting identifies the counts of one workload in one run. A later ledger with the same counting continues these
// counts.
type counting struct {
	workload, target, shard string
	began                   int64
}

func countingOf(l measure.LedgerLine) counting {
	return counting{l.Workload, l.Target, l.Shard, l.Began}
}

// latest returns the last ledger of each counting.
func latest(lists ...[]measure.LedgerLine) (all []measure.LedgerLine) {
	at := map[counting]int{}
	for _, lines := range lists {
		for _, l := range lines {
			i, known := at[countingOf(l)]
			switch {
			case !known:
				at[countingOf(l)] = len(all)
				all = append(all, l)
			case l.Time >= all[i].Time:
				all[i] = l
			}
		}
	}
	return all
}

// sumOf returns the sum of ledgers, or nil if there are none.
func sumOf(lines []measure.LedgerLine) *measure.Ledger {
	if len(lines) == 0 {
		return nil
	}
	sum := measure.Ledger{}
	for _, l := range lines {
		sum = sum.Add(l.Ledger)
	}
	return &sum
}

// judge sets the SLO of the ledgers, if all workloads have the same one.
func (r *Run) judge(name string) {
	for _, l := range r.LedgerLines {
		if l.SLO != r.LedgerLines[0].SLO {
			r.Partial = append(r.Partial, name+": its workloads have several service levels: no request is judged here, and the good ones are those of the ledger")
			return
		}
	}
	if len(r.LedgerLines) == 0 {
		return
	}
	slo, err := measure.ParseSLO(r.LedgerLines[0].SLO)
	if err != nil {
		r.Partial = append(r.Partial, fmt.Sprintf("%s: ledger: slo: %v", name, err))
	}
	r.Settings.SLO = slo
}

// checkLedger compares the ledger with the rows and reports differences in Partial. If a process was killed, rows
// follow its last ledger. For the time from that ledger to the last row, nothing is known of requests that were never
// sent.
func (r *Run) checkLedger(name string) {
	if r.Ledger == nil {
		return
	}
	measured, outcomes, last := r.Measured(), map[measure.Outcome]int64{}, int64(0)
	for _, row := range measured {
		outcomes[row.Outcome]++
		last = max(last, row.Start, row.End)
	}
	differs := func(o measure.Outcome) bool { return outcomes[o] != r.Ledger.Outcomes[o] }
	finished, rows := r.Ledger.Finished(), int64(len(measured))
	at := int64(0)
	for _, l := range r.LedgerLines {
		at = max(at, l.Time)
	}
	switch {
	case rows > finished && at > 0:
		r.Partial = append(r.Partial, fmt.Sprintf("%s: the last ledger is of %s, %v before the last request: what was never sent after it is not in this file",
			name, time.Unix(0, at).UTC().Format(time.DateTime), time.Duration(max(0, last-at)).Round(time.Millisecond)))
	case rows != finished || slices.ContainsFunc(measure.Outcomes(), differs):
		r.Partial = append(r.Partial, fmt.Sprintf("%s: the ledger counts %d finished requests, %d are in this file", name, finished, rows))
	case r.Ledger.InFlight+r.Ledger.Waiting > 0:
		r.Partial = append(r.Partial, fmt.Sprintf("%s: the last ledger is of %s, with requests not ended: %d; what came after it is not in this file",
			name, time.Unix(0, at).UTC().Format(time.DateTime), r.Ledger.InFlight+r.Ledger.Waiting))
	}
}

// equal reports whether two ledgers are known and equal.
func equal(a, b *measure.Ledger) bool {
	return a != nil && b != nil && a.Expected == b.Expected && a.InFlight == b.InFlight && a.Waiting == b.Waiting && a.Filtered == b.Filtered &&
		a.Good == b.Good && a.Eligible == b.Eligible && a.Unjudged == b.Unjudged && a.Sessions.Equal(b.Sessions) && maps.Equal(a.Outcomes, b.Outcomes) && maps.Equal(a.Dropped, b.Dropped)
}

// addUp returns the summed ledger of several shards, or of several files of one shard. It returns nil if the ledger of
// one of them is not known. missing lists the shards without a file.
func addUp(shards []Run) (sum *measure.Ledger, lines []measure.LedgerLine, missing string) {
	total := measure.Ledger{}
	for _, s := range shards {
		if s.Ledger == nil {
			return nil, nil, ""
		}
		total = total.Add(*s.Ledger)
		lines = latest(lines, s.LedgerLines)
	}
	if slices.ContainsFunc(shards, func(s Run) bool { return s.LedgerLines == nil }) {
		return &total, nil, ""
	}
	return sumOf(lines), lines, missingShards(lines)
}

// missingShards lists the shards of a run that have no ledger in lines; "" if none is missing.
func missingShards(lines []measure.LedgerLine) string {
	var there []bool
	for _, l := range lines {
		var i, of int
		if n, err := fmt.Sscanf(l.Shard, "%d/%d", &i, &of); n != 2 || err != nil || i < 0 || i >= of || of > maxWorkloads {
			return ""
		}
		there = append(there, make([]bool, max(0, of-len(there)))...)
		there[i] = true
	}
	var missing []string
	for i, is := range there {
		if !is {
			missing = append(missing, fmt.Sprintf("%d/%d", i, len(there)))
		}
	}
	return strings.Join(missing, ", ")
}

// balanced checks a ledger from a file.
func balanced(l measure.Ledger) error {
	if max(l.Expected, l.Filtered) > maxCounted {
		return fmt.Errorf("ledger: want counts of at most %d, got %d expected and %d filtered", int64(maxCounted),
			l.Expected, l.Filtered)
	}
	if err := cmp.Or(
		listed("outcomes", l.Outcomes, measure.Outcomes()),
		listed("dropped", l.Dropped, measure.DropReasons()),
		listed("sessions: outcomes", l.Sessions.Outcomes, measure.SessionOutcomes()),
	); err != nil {
		return err
	}
	if s := l.Sessions; max(s.Begun, s.Requests, s.Prompt) > maxCounted || slices.Max(s.Time[:]) > maxSessionTime {
		return fmt.Errorf("ledger: sessions: want counts of at most %d and times of at most %v, got more", int64(maxCounted),
			maxSessionTime)
	}
	return l.Balance()
}

// listed checks the names and the size of counts. Filtered requests have a count of their own.
func listed[K ~string](what string, counts map[K]int64, names []K) error {
	for name, n := range counts {
		if !slices.Contains(names, name) || name == K(measure.Filtered) || n > maxCounted {
			return fmt.Errorf("ledger: %s: want those of %v, at most %d each, got %q: %d", what, names, int64(maxCounted), name, n)
		}
	}
	return nil
}
