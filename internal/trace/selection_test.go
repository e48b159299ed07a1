package trace

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSelections(t *testing.T) {
	var b strings.Builder
	for i := range 1000 {
		session := ""
		if i%3 == 0 {
			session = fmt.Sprintf(`,"session_id":"s%d"`, i%30)
		}
		fmt.Fprintf(&b, "{\"timestamp\":%d,\"input_length\":%d%s}\n", 10+i, i+1, session)
	}
	f := open(t, b.String(), Options{})
	of := func(s Selection) []Record {
		t.Helper()
		next, err := s.Rows(f)
		if err != nil {
			t.Fatal(err)
		}
		return rest(t, next)
	}
	for _, c := range []struct {
		name        string
		s           Selection
		first, rows int
		at          time.Duration
	}{
		{"all", Selection{Sample: 1}, 0, 1000, 0},
		{"all, at their times", Selection{Sample: 1, KeepTimes: true}, 0, 1000, 10 * ms},
		{"from", Selection{Sample: 1, From: 110*ms - 1}, 100, 900, 0},
		{"from and to", Selection{Sample: 1, From: 110 * ms, To: 120 * ms, KeepTimes: true}, 100, 10, 110 * ms},
		{"rows", Selection{Sample: 1, FirstRow: 5, ToRow: 8}, 5, 3, 0},
		{"both", Selection{Sample: 1, FirstRow: 5, ToRow: 200, From: 110 * ms}, 100, 100, 0},
		{"none", Selection{Sample: 1, From: time.Hour}, -1, 0, 0},
	} {
		got := of(c.s)
		if len(got) != c.rows || c.rows > 0 && (got[0].Number != c.first || got[0].Offset != c.at) {
			t.Errorf("%s: got %d rows, want %d, the first %d at %v", c.name, len(got), c.rows, c.first, c.at)
		}
	}

	all := of(Selection{Sample: 0.3, Seed: 1})
	whole := map[string]int{}
	for _, r := range all {
		whole[r.Session]++
	}
	delete(whole, "")
	for session, turns := range whole {
		if turns < 33 { // each session has 33 or 34 of the 1000 rows
			t.Errorf("session %s: %d turns were kept, want all or none", session, turns)
		}
	}
	if n := len(all); n < 240 || n > 360 { // within 3 standard deviations, for sessions and single rows together
		t.Errorf("a sample of 0.3 has %d of 1000 rows", n)
	}
	if !cmp.Equal(all, of(Selection{Sample: 0.3, Seed: 1})) || cmp.Equal(all, of(Selection{Sample: 0.3, Seed: 2})) {
		t.Error("a sample is not its seed's")
	}
	// A larger sample has all rows of a smaller one.
	larger := of(Selection{Sample: 0.6, Seed: 1, KeepTimes: true})
	for _, r := range of(Selection{Sample: 0.3, Seed: 1, KeepTimes: true}) {
		if !slices.ContainsFunc(larger, func(l Record) bool { return l.Number == r.Number }) {
			t.Fatalf("row %d is in a sample of 0.3 and not in one of 0.6", r.Number)
		}
	}
}

func rest(t testing.TB, next func() (Record, error)) (all []Record) {
	t.Helper()
	for {
		r, err := next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
			return all
		}
		all = append(all, r)
	}
}

func TestWrongSelections(t *testing.T) {
	f := open(t, `{"input_length":1}`, Options{})
	for _, c := range []struct {
		s    Selection
		want string
	}{
		{Selection{Sample: 1, From: ms}, "from, to: want a trace with timestamps, t.jsonl has none"},
		{Selection{Sample: 1.5}, "sample: want a share above 0 and at most 1, got 1.5"},
		{Selection{}, "sample: want a share above 0 and at most 1, got 0"},
	} {
		if _, err := c.s.Rows(f); err == nil || err.Error() != c.want {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
	timed := open(t, `{"timestamp":1,"input_length":1}`, Options{})
	want := "from, to: want 0 ≤ from < to, got 2ms and 1ms"
	if _, err := (Selection{Sample: 1, From: 2 * ms, To: ms}).Rows(timed); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
