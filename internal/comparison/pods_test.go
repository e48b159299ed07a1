package comparison

import (
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"replayd/internal/canary"
	"replayd/internal/schedule"
	"replayd/internal/trace"
)

// When the pods of a side change, the pairs that are open are void, and so are those whose requests ended since the
// latest step. That the pods are not known for a while is no change.
func TestPodsOfASideChange(t *testing.T) {
	pods := [2][]string{{"a:80"}, nil}
	engine := func(of canary.Side) func() Engine { return func() Engine { return Engine{Pods: pods[of]} } }
	var told []string
	c := New(Options{
		Options: canary.Defaults(), News: func(_ slog.Level, text string) { told = append(told, text) },
		Engines: [2]func() Engine{engine(canary.Baseline), engine(canary.Candidate)},
	})
	sides := [2]Side{c.Side(canary.Baseline, "rows", nil), c.Side(canary.Candidate, "rows", nil)}
	row := 0
	due := func() (number int) {
		row++
		for _, s := range sides {
			s.Due(&schedule.Due{Record: trace.Record{Number: row}, At: time.Unix(100, 0)}, time.Unix(100, 0))
		}
		return row
	}
	end := func(row int, of ...Side) {
		for _, s := range of {
			r := asked(4, "stop")
			d := schedule.Due{Record: trace.Record{Number: row}}
			r.ID, r.Pod = "load/"+d.ID(), 2
			s.Observe(r)
		}
	}
	var passed []canary.Pair
	c.options.Pair = func(p *canary.Pair) { passed = append(passed, *p) }
	step := func() { c.step(time.Unix(101, 0), func() {}) }
	step()
	pods[1] = []string{"c:80", "d:80"}
	end(due(), sides[:]...)
	step()
	pods[1] = nil
	step()
	ended, half, open := due(), due(), due()
	end(half, sides[0])
	step()
	end(ended, sides[:]...)
	pods[1] = []string{"c:80", "e:80", "f:80"}
	step()
	end(half, sides[1])
	end(open, sides[:]...)
	end(due(), sides[:]...)
	step()
	if len(told) != 1 || !strings.HasPrefix(told[0], "the pods of the candidate have changed, there are 3 now") {
		t.Errorf("it was told %q", told)
	}
	var got []canary.Void
	for _, p := range passed {
		got = append(got, p.Void)
	}
	const changed = canary.VoidPodsChanged
	if want := []canary.Void{0, changed, changed, changed, 0}; !slices.Equal(got, want) {
		t.Errorf("the pairs are %v, want %v", got, want)
	}
	if p := passed[0].Requests; p[0].Pod != 2 || p[1].Pod != 2 {
		t.Errorf("the requests of a pair went to %+v", p)
	}
	if s := c.Status(); s.Pods != [2]int{1, 3} {
		t.Errorf("the page shows %v pods", s.Pods)
	}
}

// A change while replayd was down is found by the addresses in the state.
func TestPodsChangeBetweenTwoProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	told := 0
	compared := func(pods ...string) *Comparison {
		return New(Options{
			Name: "rollout", Options: canary.Defaults(), Given: []any{}, News: func(slog.Level, string) { told++ },
			Engines: [2]func() Engine{func() Engine { return Engine{Pods: pods} }},
		})
	}
	for i, pods := range [][]string{{"a:80", "b:80"}, {"a:80", "b:80"}, {"a:80", "c:80"}} {
		s, c := claimed(t, path), compared(pods...)
		s.Restore(c, "rows")
		c.step(time.Now(), func() {})
		s.Keep([]*Comparison{c})
		s.Close()
		if want := i / 2; told != want {
			t.Errorf("process %d with %v: %d changes were told, want %d", i, pods, told, want)
		}
	}
}
