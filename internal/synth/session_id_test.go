package synth

import (
	"regexp"
	"testing"
	"time"

	"replayd/internal/trace"
)

// The id depends on the workload, the seed, the loop, the pass and the session, and on nothing else.
func TestSessionID(t *testing.T) {
	type of struct {
		workload string
		seed     uint64
		second   int64
		pass     int64
		session  string
		row      int
	}
	id := func(o of, fraction int64) string {
		return SessionID(o.workload, o.seed, time.Unix(o.second, fraction), o.pass, &trace.Record{Session: o.session, Number: o.row, Turn: o.row})
	}
	first := of{"w", 42, 1000, 0, "s", 0}
	seen := map[string]of{}
	for _, o := range []of{
		first,
		{"v", 42, 1000, 0, "s", 0},
		{"w", 43, 1000, 0, "s", 0},
		{"w", 42, 1001, 0, "s", 0},
		{"w", 42, 1000, 1, "s", 0},
		{"w", 42, 1000, 0, "t", 0},
		{"w", 42, 1000, 0, "", 0},
		{"w", 42, 1000, 0, "", 1},
	} {
		got := id(o, 0)
		if !regexp.MustCompile("^[0-9a-f]{16}$").MatchString(got) {
			t.Errorf("%+v: want 16 hexadecimal digits, got %q", o, got)
		}
		if other, ok := seen[got]; ok {
			t.Errorf("%+v and %+v have one id", o, other)
		}
		seen[got] = o
	}
	later := first
	later.row = 7
	if got, want := id(later, 999), id(first, 0); got != want { // another row of the session, on a shard whose clock differs by a fraction
		t.Errorf("another row of the session: want %s, got %s", want, got)
	}
	if got, want := id(first, 0), "b503f902af9fc459"; got != want {
		t.Errorf("want %s, as in earlier versions, got %s", want, got) // a replay that was restarted has the ids from before
	}
}
