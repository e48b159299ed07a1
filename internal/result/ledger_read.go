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

// Bounds of what a file of records says of its runs.
const (
	mostWorkloads = 10_000 // of one run
	mostRunsOfOne = 200    // in one file
)

// ledger takes a line {"ledger":{…}}. Those of one instant belong together: one for each workload of a process.
func (x *exportReader) ledger(text []byte) error {
	var line struct {
		Ledger measure.LedgerLine `json:"ledger"`
	}
	if err := json.Unmarshal(text, &line); err != nil {
		return jsonFault(err)
	}
	l := line.Ledger
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

// told takes the ledgers of one instant, which are whole now. Where none of them goes on with one of the run, another run begins. So it
// does where the rows before them, which no ledger goes with, are older than they: an old replayd wrote them.
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

// again begins another run where a record has the id of one before, and no ledger tells the runs apart.
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

// counting names the counts of one workload in one run. A ledger that has the same goes on with them.
type counting struct {
	workload, target, shard string
	began                   int64
}

func countingOf(l measure.LedgerLine) counting {
	return counting{l.Workload, l.Target, l.Shard, l.Began}
}

// latest are the last of all ledgers that go on with the same counts.
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

// sumOf is the sum of ledgers; nil of none.
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

// judge takes the service level by which the requests were judged, where all workloads have one.
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

// checkLedger holds the ledger against the rows. Where a process was killed, rows stand after its last ledger, and how long that was before them
// is how long nothing is known of what was never sent.
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

// equal says whether two ledgers are known and the same.
func equal(a, b *measure.Ledger) bool {
	return a != nil && b != nil && a.Expected == b.Expected && a.InFlight == b.InFlight && a.Waiting == b.Waiting && a.Filtered == b.Filtered &&
		a.Good == b.Good && a.Eligible == b.Eligible && maps.Equal(a.Outcomes, b.Outcomes) && maps.Equal(a.Dropped, b.Dropped)
}

func positive(counts map[measure.Outcome]int64) map[measure.Outcome]int64 {
	counts = maps.Clone(counts)
	maps.DeleteFunc(counts, func(_ measure.Outcome, n int64) bool { return n == 0 })
	return counts
}

// addUp is the ledger of several shards, or of several files of one; nil where that of one is not known. It says which shards are not
// there.
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

// missingShards says which shards of a run have no ledger among these; "" where none is missing.
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
