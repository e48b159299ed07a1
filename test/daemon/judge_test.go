//go:build daemon

package daemon_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"
)

// A shift is a change of what a workload has to send: from some instant in [from, to] on it is another plan, or none.
// The instant is the daemon's to choose, and each row has to be on one side of it.
type shift struct {
	from, to time.Time
	plan     *plan
}

// A key is a request that a plan asks for. The input length tells the rows of two traces apart.
type key struct {
	id    string
	at    int64 // ns
	input int
}

func (p *plan) keys(workload string, from, to time.Time) (all []key) {
	for _, d := range p.between(from, to) {
		all = append(all, key{d.id(workload), d.at.UnixNano(), p.rows[d.row].Input})
	}
	return all
}

func (s *sent) key() key { return key{s.ID, s.Planned, s.Input} }

// exactly holds what was sent of a workload, and planned in [from, to), to the plan that was in force: each row once, at
// its instant, and nothing else. It gives the number of rows.
func exactly(t *testing.T, workload string, first *plan, shifts []shift, all []sent, from, to time.Time) int {
	t.Helper()
	for _, s := range shifts {
		if s.from.Before(to) && s.to.After(to) {
			to = s.from // what came after is not looked at
		}
	}
	got := map[key]int{}
	for i := range all {
		if s := &all[i]; s.workload == workload && !s.at.Before(from) && s.at.Before(to) {
			got[s.key()]++
		}
	}
	var want []key
	now, begin := first, from
	for _, s := range shifts {
		if !s.from.Before(to) {
			break
		}
		at := s.choose(workload, now, got)
		want = append(want, now.keys(workload, begin, at)...)
		now, begin = s.plan, at
	}
	want = append(want, now.keys(workload, begin, to)...)
	faults := 0
	fault := func(format string, args ...any) {
		if faults++; faults <= 20 {
			t.Errorf(workload+": "+format, args...)
		}
	}
	for _, k := range want {
		if n := got[k]; n != 1 {
			fault("%s, planned %v: want it once, it was sent %d times%s", k.id, time.Unix(0, k.at).UTC(), n, near(shifts, k))
		}
		delete(got, k)
	}
	for k := range got {
		fault("%s, planned %v: no plan that was in force has it%s", k.id, time.Unix(0, k.at).UTC(), near(shifts, k))
	}
	if faults > 0 {
		t.Errorf("%s: %d faults in %d rows", workload, faults, len(want))
	}
	return len(want)
}

// choose finds the instant of a shift by which the most of what was sent is right.
func (s *shift) choose(workload string, before *plan, got map[key]int) time.Time {
	old, next := before.keys(workload, s.from, s.to), s.plan.keys(workload, s.from, s.to)
	instants := []time.Time{s.from, s.to}
	for _, k := range slices.Concat(old, next) {
		instants = append(instants, time.Unix(0, k.at), time.Unix(0, k.at+1))
	}
	best, least := s.from, math.MaxInt
	for _, at := range instants {
		wrong := 0
		for _, k := range old {
			wrong += differ(k.at < at.UnixNano(), got[k])
		}
		for _, k := range next {
			wrong += differ(k.at >= at.UnixNano(), got[k])
		}
		if wrong < least {
			best, least = at, wrong
		}
	}
	return best
}

func differ(want bool, got int) int {
	if want {
		return max(1-got, got-1)
	}
	return got
}

// near says which shift a request was close to.
func near(shifts []shift, k key) string {
	at := time.Unix(0, k.at)
	for i, s := range shifts {
		if at.After(s.from.Add(-2*time.Second)) && at.Before(s.to.Add(2*time.Second)) {
			return fmt.Sprintf(", near shift %d, which was %v to %v", i, s.from.UTC(), s.to.UTC())
		}
	}
	return ""
}
