//go:build faults

package faults_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"replayd/internal/measure"
	"replayd/internal/sim"

	"replayd/test/outside"
)

// expects returns the possible outcomes of a passage, of which one is right. There are several if the two sides of a
// reset cannot know what the other has seen, or which of two timeouts was first.
func (p *passage) expects(f fault) []measure.Outcome {
	spoiled := measure.Outcome(f.outcome)
	switch {
	case p.spoiled && f.slowly && p.engine != nil: // which was first?
		return []measure.Outcome{spoiled, p.afterEnd()}
	case p.spoiled:
		return []measure.Outcome{spoiled}
	case p.left != nil:
		return []measure.Outcome{measure.TimeoutTotal, measure.Aborted}
	case p.over && p.stopped == silent:
		return []measure.Outcome{p.afterSilence()}
	case p.reset: // the client loses data that it has not read by then: it was given less
		return []measure.Outcome{p.afterEnd(), measure.Truncated, measure.ConnectFailed}
	case p.over || p.engine != nil:
		return []measure.Outcome{p.afterEnd()}
	}
	return []measure.Outcome{measure.OK}
}

// afterEnd returns the outcome of an answer that broke off.
func (p *passage) afterEnd() measure.Outcome {
	switch {
	case p.bytes == 0:
		return measure.ConnectFailed
	case p.finish:
		return measure.OK
	}
	return measure.Truncated
}

// afterSilence returns the outcome of an answer that went silent.
func (p *passage) afterSilence() measure.Outcome {
	switch {
	case p.finish || p.done: // the answer is there
		return measure.OK
	case !p.stream:
		return measure.TimeoutTotal
	case p.content:
		return measure.TimeoutStall
	}
	return measure.TimeoutFirstToken
}

// A tally counts requests by fault and outcome.
type tally map[string]map[measure.Outcome]int

func (a tally) add(fault string, o measure.Outcome) {
	if a[fault] == nil {
		a[fault] = map[measure.Outcome]int{}
	}
	a[fault][o]++
}

// table formats the tally: a row for each fault, a column for each outcome that occurred.
func (a tally) table(faults []fault) string {
	var columns []measure.Outcome
	for _, of := range a {
		for o := range of {
			if !slices.Contains(columns, o) {
				columns = append(columns, o)
			}
		}
	}
	slices.Sort(columns)
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "fault\t")
	for _, o := range columns {
		fmt.Fprint(w, o, "\t")
	}
	fmt.Fprintln(w)
	for _, f := range faults {
		fmt.Fprint(w, f.name, "\t")
		for _, o := range columns {
			if n := a[f.name][o]; n > 0 {
				fmt.Fprint(w, n)
			}
			fmt.Fprint(w, "\t")
		}
		fmt.Fprintln(w)
	}
	w.Flush()
	return b.String()
}

// verdicts compares each record with its passages: no more tries than the record says, and the outcome of the last
// passage. It also compares the engine's log with the passages. If the machine stood still, an answer may be too late.
func verdicts(t *testing.T, faults []fault, passages []passage, records []outside.Record, log []sim.LogEntry, still *stills) tally {
	t.Helper()
	byName := map[string]fault{}
	for _, f := range faults {
		byName[f.name] = f
	}
	through := map[string][]passage{} // by id
	for _, p := range passages {
		through[p.id] = append(through[p.id], p)
	}
	for _, of := range through {
		slices.SortFunc(of, func(a, b passage) int { return a.began.Compare(b.began) })
	}
	asked := map[string]int{}
	for _, e := range log {
		if e.ID == "replayd/probe" {
			continue
		}
		if asked[e.ID]++; asked[e.ID] > len(through[e.ID]) {
			t.Errorf("%s: the engine saw it %d times, the proxy %d", e.ID, asked[e.ID], len(through[e.ID]))
		}
	}
	wrong := 0
	fault := func(format string, args ...any) {
		if wrong++; wrong <= 20 {
			t.Errorf(format, args...)
		}
	}
	all, excused := tally{}, 0
	again := map[string]int{} // first tries that may remain
	for _, r := range records {
		of := through[r.ID]
		if len(of) == 0 {
			fault("%s: ended %s (%s): the proxy never saw it", r.ID, r.Outcome, r.Error)
			continue
		}
		last := 0 // the try whose write is in the record
		for i := range of {
			if way(&of[i], &r) < way(&of[last], &r) {
				last = i
			}
		}
		if end := time.Unix(0, r.End); r.Retried && of[last].bytes == 0 && last+1 < len(of) && of[last+1].began.Before(end) {
			last++ // that was the first try: on a busy machine a request is read long after its write
		}
		p := of[last]
		through[r.ID] = slices.Delete(of, last, last+1)
		if r.Retried {
			again[r.ID]++
		}
		switch want := p.expects(byName[p.fault]); {
		case slices.Contains(want, measure.Outcome(r.Outcome)):
		case strings.HasPrefix(r.Outcome, "timeout_") && still.during(time.Unix(0, r.Write), time.Unix(0, r.End)):
			excused++
		default:
			fault("%s: %s: want %v, got %s (%s), %v after %+v", r.ID, p.fault, want, r.Outcome, r.Error, time.Duration(r.End-r.Write), p)
		}
		all.add(p.fault, measure.Outcome(r.Outcome))
	}
	for id, of := range through {
		if len(of) > again[id] || slices.ContainsFunc(of, func(p passage) bool { return p.bytes > 0 }) {
			fault("%s: %d passages that no record is of, the first %+v", id, len(of), of[0])
		}
	}
	if wrong > 0 {
		t.Errorf("%d faults in %d records", wrong, len(records))
	}
	t.Logf("the machine stood still %d times, the longest %v: %d timeouts by that", len(still.all), still.longest().Round(time.Millisecond), excused)
	return all
}

// way is the time between the write of a request and the begin of a passage.
func way(p *passage, r *outside.Record) time.Duration {
	return p.began.Sub(time.Unix(0, r.Write)).Abs()
}
