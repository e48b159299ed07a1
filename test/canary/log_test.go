//go:build canary

package canary_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"replayd/internal/sim"

	"replayd/bench/lab"

	"replayd/test/machine"
	"replayd/test/outside"
)

// A both is a row that reached both servers, as they logged it.
type both struct{ baseline, candidate sim.LogEntry }

// A logs is what the servers saw of a comparison.
type logs struct {
	pairs                   []both // in order of the baseline's arrivals
	onlyBaseline, onlyOther int    // rows that reached one server alone
}

// read ends both servers, so that their logs are whole, and joins the logs. Entries that ended before the comparison
// began belong to an earlier one.
func (p *pair) read(t *testing.T, since time.Time) *logs {
	t.Helper()
	for _, s := range []*server{p.baseline, p.candidate} {
		if s.process != nil { // one process may be both sides
			s.process.Term(t)
		}
	}
	base, cand := p.baseline.rows(t, since), p.candidate.rows(t, since)
	l := &logs{}
	for id, b := range base {
		if c, ok := cand[id]; ok {
			l.pairs = append(l.pairs, both{b, c})
		} else {
			l.onlyBaseline++
		}
	}
	l.onlyOther = len(cand) - len(l.pairs)
	slices.SortFunc(l.pairs, func(a, b both) int { return int(a.baseline.Arrival - b.baseline.Arrival) })
	return l
}

// rows returns the requests of a server's own side by loop/row. With one server on both sides it has those of the other side too.
func (s *server) rows(t *testing.T, since time.Time) map[string]sim.LogEntry {
	t.Helper()
	all, _ := outside.Lines[sim.LogEntry](t, s.log)
	rows := map[string]sim.LogEntry{}
	for _, e := range all {
		workload, place, ok := strings.Cut(e.ID, "/")
		own := strings.Contains(workload, "@") == (s.name == "candidate")
		if !ok || workload == "replayd" || !own || e.Arrival < since.UnixNano() {
			continue
		}
		if _, twice := rows[place]; twice {
			t.Errorf("%s: %s arrived twice", s.name, e.ID)
		}
		rows[place] = e
	}
	return rows
}

// agree holds the logs against the table: as many pairs, the share of bad requests, the ratio of the latencies, equal bodies.
func (l *logs) agree(t *testing.T, s *said) {
	t.Helper()
	all := len(l.pairs) + l.onlyBaseline + l.onlyOther
	// Void pairs may have reached no server: replayd did not run.
	if s.pairs > all || s.pairs+s.void < all-afterVerdict() {
		t.Errorf("the servers got %d rows, the table has %d pairs and %d void ones", all, s.pairs, s.void)
	}
	l.equalBodies(t)
	var ttft, tpot []float64
	for i := range l.pairs {
		if p := &l.pairs[i]; p.ok() {
			ttft = append(ttft, first(&p.candidate)/first(&p.baseline))
			tpot = append(tpot, rest(&p.candidate)/rest(&p.baseline))
		}
	}
	if len(ttft) == 0 {
		return
	}
	// The table's ratio is the median of the blocks' medians, and has the way over the connection in it.
	for name, ratios := range map[string][]float64{"ttft": ttft, "tpot": tpot} {
		own := lab.Median(ratios...)
		t.Logf("%s: %.4f by the servers' logs, %.3f by the table", name, own, s.ratio[name])
		got, ok := s.ratio[name]
		if ok && s.blocks[name] >= 9 && math.Abs(got/own-1) > 0.02 && machine.Measures(t, "the ratios of the latencies") {
			t.Errorf("%s: the table has the ratio %.3f, the servers' logs %.3f", name, got, own)
		}
	}
	b, c := l.failed(len(l.pairs))
	least, most := l.excess(s.pairs, s.void)
	t.Logf("bad: %d and %d of %d by the servers' logs, by the table an excess of %.2f %%", b, c, len(l.pairs), 100*s.excess["bad"])
	if got, ok := s.excess["bad"]; ok && (got < least || got > most) {
		t.Errorf("bad: the table has an excess of %.4f, by the servers' logs it is %.4f to %.4f", got, least, most)
	}
}

// afterVerdict is the most rows after the last block of a comparison: those of its last seconds, and those that were in flight.
func afterVerdict() int { return int(5 * time.Second / spacing) }

// excess is the least and the most that the candidate's share of errors may exceed the baseline's by in the table, 0 to 1. The table ends with its
// last block, and the logs do not know where that is. It also leaves void pairs out: few have up to two errors. Many are a sample of all, drawn without
// regard to errors, which moves the share by at most 4 standard deviations of a draw without replacement.
func (l *logs) excess(judged, void int) (least, most float64) {
	const few, deviations = 2, 4
	least, most = math.Inf(1), math.Inf(-1)
	for n := max(1, len(l.pairs)-afterVerdict()); n <= len(l.pairs); n++ {
		b, c := l.failed(n)
		share := float64(b+c) / float64(n) // of pairs with one error
		slack := few/float64(n) + deviations*math.Sqrt(share*(1-min(1, share))*float64(void)/float64(max(1, judged))/float64(n))
		least, most = min(least, float64(c-b)/float64(n)-slack), max(most, float64(c-b)/float64(n)+slack)
	}
	return least, most
}

func (p *both) ok() bool { return p.baseline.Outcome == sim.OK && p.candidate.Outcome == sim.OK }

// first is the time to the first token, ms.
func first(e *sim.LogEntry) float64 { return float64(e.Chunks[0]-e.Arrival) / 1e6 }

// rest is the time from the first to the last token, ms.
func rest(e *sim.LogEntry) float64 { return float64(e.Chunks[len(e.Chunks)-1]-e.Chunks[0]) / 1e6 }

// failed counts the requests that each server did not answer well, in the first n pairs.
func (l *logs) failed(n int) (baseline, candidate int) {
	for i := range l.pairs[:n] {
		if l.pairs[i].baseline.Outcome != sim.OK {
			baseline++
		}
		if l.pairs[i].candidate.Outcome != sim.OK {
			candidate++
		}
	}
	return baseline, candidate
}

// equalBodies checks that both servers got the same bytes. Both have the same model.
func (l *logs) equalBodies(t *testing.T) {
	t.Helper()
	equal, unequal := 0, 0
	for _, p := range l.pairs {
		b, c := p.baseline.BodySHA256, p.candidate.BodySHA256
		switch {
		case b == "" || c == "": // one of them was cut
		case b == c:
			equal++
		default:
			unequal++
		}
	}
	t.Logf("bodies: %d rows with equal bytes on both sides, %d with others", equal, unequal)
	if unequal > 0 || equal == 0 {
		t.Errorf("want equal bodies on both sides, got %d others and %d equal ones", unequal, equal)
	}
}
