package schedule

import (
	"slices"
	"testing"
	"time"

	"replayd/internal/trace"
)

// The waits after a row's parents are scaled and limited like delays, apart from the speed, and the source's own stay as they are.
func TestWaitsAfterParents(t *testing.T) {
	const s = time.Second
	edges := []trace.Edge{{Row: 0, Wait: 10 * s}, {Row: 1}, {Row: 2, Wait: Longest}}
	rows := []trace.Record{{Session: "a", After: []trace.Edge{}}, {Session: "a", After: edges, Floating: true}}
	for name, c := range map[string]struct {
		delay *TurnDelay
		want  [3]time.Duration
	}{
		"as in the source": {nil, [3]time.Duration{10 * s, 0, Longest}},
		"scaled":           {&TurnDelay{Scale: 0.5}, [3]time.Duration{5 * s, 0, Longest / 2}},
		"both":             {&TurnDelay{Scale: 3, Max: 20 * s}, [3]time.Duration{20 * s, 0, 20 * s}},
		"none":             {&TurnDelay{}, [3]time.Duration{0, 0, 0}},
	} {
		plan, err := New(FromRecords(rows, true),
			Options{Pattern: Pattern{Arrival: Exact, Speed: 20}, Repeat: Repeat{Mode: Once}, TurnDelay: c.delay})
		if err != nil {
			t.Fatal(name, err)
		}
		next, err := plan.Rows(Loop{}, time.Time{})
		if err != nil {
			t.Fatal(name, err)
		}
		if root, err := next.Next(); err != nil || root.After == nil || len(root.After) > 0 {
			t.Errorf("%s: want no parents, got %v, %v", name, root.After, err)
		}
		due, err := next.Next()
		if err != nil {
			t.Fatal(name, err)
		}
		for i, want := range c.want {
			if e := due.After[i]; e.Row != i || e.Wait != want {
				t.Errorf("%s: parent %d: want a wait of %v, got %+v", name, i, want, e)
			}
		}
	}
	if want := []trace.Edge{{Row: 0, Wait: 10 * s}, {Row: 1}, {Row: 2, Wait: Longest}}; !slices.Equal(edges, want) {
		t.Errorf("want the source's edges unchanged, got %v", edges)
	}
}
