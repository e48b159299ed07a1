package schedule

import (
	"testing"
	"time"

	"replayd/internal/trace"
)

// The delays of the rows are scaled, and then limited. A row without a delay gets none.
func TestTurnDelay(t *testing.T) {
	const s = time.Second
	for name, c := range map[string]struct {
		delay *TurnDelay
		want  [4]time.Duration
	}{
		"as in the source": {nil, [4]time.Duration{0, 10 * s, s, Longest}},
		"factor 1":         {&TurnDelay{Scale: 1}, [4]time.Duration{0, 10 * s, s, Longest}},
		"scaled":           {&TurnDelay{Scale: 0.5}, [4]time.Duration{0, 5 * s, s / 2, Longest / 2}},
		"limited":          {&TurnDelay{Scale: 1, Max: 4 * s}, [4]time.Duration{0, 4 * s, s, 4 * s}},
		"both":             {&TurnDelay{Scale: 3, Max: 4 * s}, [4]time.Duration{0, 4 * s, 3 * s, 4 * s}},
		"none":             {&TurnDelay{}, [4]time.Duration{0, 0, 0, 0}},
		"over the longest": {&TurnDelay{Scale: 1000}, [4]time.Duration{0, 10000 * s, 1000 * s, Longest}},
	} {
		rows := []trace.Record{{Session: "a"}, {Session: "a", Delay: 10 * s}, {Session: "a", Delay: s}, {Session: "a", Delay: Longest}}
		plan, err := New(FromRecords(rows, false),
			Options{Pattern: Pattern{Arrival: Concurrency, Speed: 1}, Repeat: Repeat{Mode: Once}, TurnDelay: c.delay})
		if err != nil {
			t.Fatal(name, err)
		}
		next, err := plan.Rows(Loop{}, time.Time{})
		if err != nil {
			t.Fatal(name, err)
		}
		for i, want := range c.want {
			if due, err := next.Next(); err != nil || due.Delay != want {
				t.Errorf("%s: row %d: want a delay of %v, got %v, %v", name, i, want, due.Delay, err)
			}
		}
	}
	for _, d := range []TurnDelay{{Scale: -1}, {Scale: 1001}, {Scale: 1, Max: -1}} {
		o := Options{Pattern: Pattern{Arrival: Exact, Speed: 1}, Repeat: Repeat{Mode: Once}, TurnDelay: &d}
		if len(o.Check()) != 1 {
			t.Errorf("%+v: want one fault, got %v", d, o.Check())
		}
	}
}
