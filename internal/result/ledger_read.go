package result

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"replayd/internal/measure"
)

// Limits on the runs in a file of records.
const (
	mostWorkloads = 10_000 // per run
	mostRunsOfOne = 200    // per file
)

// ledger reads a line {"ledger":{…}}. Lines of one instant belong together: there is one for each workload of a
// process.
func (x *exportReader) ledger(text []byte) error {
	var line struct {
		Ledger measure.LedgerLine `json:"ledger"`
	}
	if err := json.Unmarshal(text, &line); err != nil {
		return jsonFault(err)
	}
	l := line.Ledger
	if l.Version > measure.RecordsVersion {
		return fmt.Errorf("ledger: version: want at most %d, got %d, of a newer replayd", measure.RecordsVersion, l.Version)
	}
	if l.Time < 0 || l.Time > lastInstant || l.Began < 0 || l.Began > lastInstant {
		return fmt.Errorf("ledger: time_ns, began_ns: want Unix time in ns from 0 to %d, got %d and %d", int64(lastInstant), l.Time, l.Began)
	}
	if err := balanced(l.Ledger); err != nil {
		return err
	}
	if len(x.telling) > 0 && x.telling[0].Time != l.Time {
		if err := x.told(); err != nil {
			return err
		}
	}
	if len(x.telling) >= mostWorkloads {
		return fmt.Errorf("ledger: want at most %d workloads, got more", mostWorkloads)
	}
	x.telling = append(x.telling, l)
	return nil
}

// told adds the ledgers of one instant, now complete, to the run. It begins another run if none of the ledgers
// continues a counting of this run. It also begins another run if this run has rows but no ledger, and all rows are
// from before the ledgers began: an old replayd wrote those rows.
func (x *exportReader) told() error {
	if len(x.telling) == 0 {
		return nil
	}
	lines := x.telling
	x.telling = nil
	known := map[counting]bool{}
	for _, l := range x.run.Told {
		known[countingOf(l)] = true
	}
	goesOn := func(l measure.LedgerLine) bool {
		if len(known) == 0 {
			return x.last == 0 || x.last >= l.Began
		}
		return known[countingOf(l)]
	}
	if !slices.ContainsFunc(lines, goesOn) {
		if err := x.next(); err != nil {
			return err
		}
	}
	x.run.Told = latest(x.run.Told, lines)
	if len(x.run.Told) > mostWorkloads {
		return fmt.Errorf("ledger: want at most %d workloads, got more", mostWorkloads)
	}
	return nil
}

// again begins another run if a record repeats an id and no ledger tells the runs apart.
func (x *exportReader) again(id string) error {
	if len(x.run.Told) > 0 {
		return nil
	}
	if _, seen := x.ids[id]; seen {
		if err := x.next(); err != nil {
			return err
		}
	}
	if len(x.ids) < x.most {
		x.ids[id] = struct{}{}
	}
	return nil
}

func (x *exportReader) next() error {
	x.close()
	if len(x.runs) >= mostRunsOfOne {
		return fmt.Errorf("want the records of at most %d runs, got more", mostRunsOfOne)
	}
	x.startRun()
	return nil
}

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
	for _, l := range r.Told {
		if l.SLO != r.Told[0].SLO {
			r.Partial = append(r.Partial, name+": its workloads have several service levels: no request is judged here, and the good ones are those of the ledger")
			return
		}
	}
	if len(r.Told) == 0 {
		return
	}
	slo, err := measure.ParseSLO(r.Told[0].SLO)
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
	outcomes, last := map[measure.Outcome]int64{}, int64(0)
	for _, row := range r.Measured() {
		outcomes[row.Outcome]++
		last = max(last, row.Start, row.End)
	}
	finished, rows := r.Ledger.Finished(), int64(len(r.Measured()))
	at := int64(0)
	for _, l := range r.Told {
		at = max(at, l.Time)
	}
	switch {
	case rows > finished && at > 0:
		r.Partial = append(r.Partial, fmt.Sprintf("%s: the last ledger is of %s, %v before the last request: what was never sent after it is not in this file",
			name, time.Unix(0, at).UTC().Format(time.DateTime), time.Duration(max(0, last-at)).Round(time.Millisecond)))
	case rows != finished || !maps.Equal(outcomes, positive(r.Ledger.Outcomes)):
		r.Partial = append(r.Partial, fmt.Sprintf("%s: the ledger counts %d finished requests, %d are in this file", name, finished, rows))
	case r.Ledger.InFlight+r.Ledger.Waiting > 0:
		r.Partial = append(r.Partial, fmt.Sprintf("%s: the last ledger is of %s, with requests not ended: %d; what came after it is not in this file",
			name, time.Unix(0, at).UTC().Format(time.DateTime), r.Ledger.InFlight+r.Ledger.Waiting))
	}
}

// equal reports whether two ledgers are known and equal.
func equal(a, b *measure.Ledger) bool {
	return a != nil && b != nil && a.Expected == b.Expected && a.InFlight == b.InFlight && a.Waiting == b.Waiting && a.Filtered == b.Filtered &&
		a.Good == b.Good && a.Eligible == b.Eligible && a.Sessions.Equal(b.Sessions) && maps.Equal(a.Outcomes, b.Outcomes) && maps.Equal(a.Dropped, b.Dropped)
}

func positive(counts map[measure.Outcome]int64) map[measure.Outcome]int64 {
	counts = maps.Clone(counts)
	maps.DeleteFunc(counts, func(_ measure.Outcome, n int64) bool { return n == 0 })
	return counts
}

// addUp returns the summed ledger of several shards, or of several files of one shard. It returns nil if the ledger of
// one of them is not known. missing lists the shards without a file.
func addUp(shards []Run) (sum *measure.Ledger, told []measure.LedgerLine, missing string) {
	total := measure.Ledger{}
	for _, s := range shards {
		if s.Ledger == nil {
			return nil, nil, ""
		}
		total = total.Add(*s.Ledger)
		told = latest(told, s.Told)
	}
	if slices.ContainsFunc(shards, func(s Run) bool { return s.Told == nil }) {
		return &total, nil, ""
	}
	return sumOf(told), told, missingShards(told)
}

// missingShards lists the shards of a run that have no ledger in told; "" if none is missing.
func missingShards(told []measure.LedgerLine) string {
	var there []bool
	for _, l := range told {
		var i, of int
		if n, err := fmt.Sscanf(l.Shard, "%d/%d", &i, &of); n != 2 || err != nil || i < 0 || i >= of || of > mostWorkloads {
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
