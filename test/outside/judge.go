package outside

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"
)

// A Shift is a change of a workload's plan: from some instant in [From, To] on there is another plan, or none. The
// daemon chooses the instant, and each row must be on one side of it.
type Shift struct {
	From, To time.Time
	Plan     *Plan
}

// A Key is a request that a plan asks for. The input length distinguishes the rows of two traces.
type Key struct {
	ID    string
	At    int64 // ns
	Input int
}

// Keys returns the requests of a workload that are due in [from, to).
func (p *Plan) Keys(workload string, from, to time.Time) (all []Key) {
	for _, d := range p.Between(from, to) {
		all = append(all, Key{d.RequestID(workload), d.At.UnixNano(), p.Rows[d.Row].Input})
	}
	return all
}

// Key returns the request of a record.
func (r *Record) Key() Key { return Key{r.ID, r.Planned, r.Input} }

// Exactly compares the requests of a workload that were sent, and planned in [from, to), with the plan in force: each
// row once, at its instant, and nothing else. Up to dropped rows may be missing. It returns the number of rows of the
// plan, and of missing rows.
func Exactly(t *testing.T, workload string, first *Plan, shifts []Shift, all []Record, from, to time.Time, dropped int) (rows, missing int) {
	t.Helper()
	for _, s := range shifts {
		if s.From.Before(to) && s.To.After(to) {
			to = s.From // later requests are not checked
		}
	}
	got := map[Key]int{}
	for i := range all {
		r := &all[i]
		at := time.Unix(0, r.Planned)
		if name, _, _ := Place(t, r.ID); name == workload && !at.Before(from) && at.Before(to) {
			got[r.Key()]++
		}
	}
	var want []Key
	now, begin := first, from
	for _, s := range shifts {
		if !s.From.Before(to) {
			break
		}
		at := s.choose(workload, now, got)
		want = append(want, now.Keys(workload, begin, at)...)
		now, begin = s.Plan, at
	}
	want = append(want, now.Keys(workload, begin, to)...)
	faults := 0
	fault := func(format string, args ...any) {
		if faults++; faults <= 20 {
			t.Errorf(workload+": "+format, args...)
		}
	}
	for _, k := range want {
		n := got[k]
		if n == 0 {
			missing++
		}
		if n > 1 || missing > dropped {
			fault("%s, planned %v: want it once, it was sent %d times%s", k.ID, time.Unix(0, k.At).UTC(), n, near(shifts, k))
		}
		delete(got, k)
	}
	for k := range got {
		fault("%s, planned %v: no plan that was in force has it%s", k.ID, time.Unix(0, k.At).UTC(), near(shifts, k))
	}
	if faults > 0 {
		t.Errorf("%s: %d faults in %d rows", workload, faults, len(want))
	}
	return len(want), missing
}

// choose returns the instant of a shift by which most of the sent requests are right.
func (s *Shift) choose(workload string, before *Plan, got map[Key]int) time.Time {
	old, next := before.Keys(workload, s.From, s.To), s.Plan.Keys(workload, s.From, s.To)
	instants := []time.Time{s.From, s.To}
	for _, k := range slices.Concat(old, next) {
		instants = append(instants, time.Unix(0, k.At), time.Unix(0, k.At+1))
	}
	best, least := s.From, math.MaxInt
	for _, at := range instants {
		wrong := 0
		for _, k := range old {
			wrong += differ(k.At < at.UnixNano(), got[k])
		}
		for _, k := range next {
			wrong += differ(k.At >= at.UnixNano(), got[k])
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

// near names the shift that a request was close to.
func near(shifts []Shift, k Key) string {
	at := time.Unix(0, k.At)
	for i, s := range shifts {
		if at.After(s.From.Add(-2*time.Second)) && at.Before(s.To.Add(2*time.Second)) {
			return fmt.Sprintf(", near shift %d, which was %v to %v", i, s.From.UTC(), s.To.UTC())
		}
	}
	return ""
}
