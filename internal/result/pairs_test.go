package result

import (
	"fmt"
	"testing"

	"replayd/internal/measure"
)

// rowsOf returns rows with ids of a workload; each has a length of its own.
func rowsOf(workload string, numbers ...int) (rows []Row) {
	for _, n := range numbers {
		rows = append(rows, Row{
			ID: fmt.Sprintf("%s/0/%d", workload, n), Prompt: measure.Length{Asked: 100 + n}, Outcome: measure.OK,
		})
	}
	return rows
}

func ids(rows []Row) (all []string) {
	for _, r := range rows {
		all = append(all, r.ID)
	}
	return all
}

func TestPairs(t *testing.T) {
	// Two runs name their workload as they like, and the second ends early and in another order.
	from, to := rowsOf("old", 0, 1, 2, 3, 4), rowsOf("new", 9, 3, 2, 1, 0)
	to[1].Outcome = measure.HTTP5xx
	p := NewPairs(from, to)
	for what, got := range map[string][2]any{
		"partners of the first":  {ids(p.Of[0]), []string{"old/0/0", "old/0/1", "old/0/2", "old/0/3"}},
		"partners of the second": {ids(p.Of[1]), []string{"new/0/0", "new/0/1", "new/0/2", "new/0/3"}},
		"alone in the first":     {ids(p.Alone[0]), []string{"old/0/4"}},
		"alone in the second":    {ids(p.Alone[1]), []string{"new/0/9"}},
		"both ok":                {p.BothOK(), 3},
		"most":                   {p.Most(), true},
	} {
		if fmt.Sprint(got[0]) != fmt.Sprint(got[1]) {
			t.Errorf("%s: got %v, want %v", what, got[0], got[1])
		}
	}
}

func TestOtherRowsHaveNoPartner(t *testing.T) {
	change := func(of func(*Row)) []Row {
		rows := rowsOf("w", 0, 1, 2)
		for i := range rows {
			of(&rows[i])
		}
		return rows
	}
	two := append(rowsOf("w", 0, 1, 2), rowsOf("v", 0)...)
	for what, c := range map[string]struct {
		to    []Row
		pairs int
	}{
		"the same":            {change(func(*Row) {}), 3},
		"another prompt":      {change(func(r *Row) { r.Prompt.Asked++ }), 0},
		"another answer":      {change(func(r *Row) { r.Answer.Asked = 7 }), 0},
		"a session":           {change(func(r *Row) { r.Conversation = "s" }), 0},
		"another turn":        {change(func(r *Row) { r.Turn = 1 }), 0},
		"another loop":        {change(func(r *Row) { r.ID = "w/1/0" }), 0},
		"ids of another tool": {change(func(r *Row) { r.ID = "6f1c" }), 0},
		"no ids":              {change(func(r *Row) { r.ID = "" }), 0},
		"one id many times":   {change(func(r *Row) { r.ID, r.Prompt.Asked = "w/0/0", 100 }), 1},
		"two workloads":       {two, 3}, // and v/0/0 is not w/0/0
		"none":                {nil, 0},
	} {
		p := NewPairs(rowsOf("w", 0, 1, 2), c.to)
		if n := len(p.Of[0]); n != c.pairs || n != len(p.Of[1]) || n+len(p.Alone[0]) != 3 || n+len(p.Alone[1]) != len(c.to) {
			t.Errorf("%s: %d pairs, %d and %d alone, want %d pairs", what, n, len(p.Alone[0]), len(p.Alone[1]), c.pairs)
		}
	}
}

// Half of the rows of each run must have a partner.
func TestMostRows(t *testing.T) {
	for n, want := range map[int]bool{0: false, 1: false, 2: true, 4: true} {
		shared := rowsOf("w", 0, 1, 2, 3)[:n]
		if got := NewPairs(rowsOf("w", 0, 1, 2, 3), append(shared, rowsOf("w", 9)...)).Most(); got != want {
			t.Errorf("%d of 4: got %v, want %v", n, got, want)
		}
		if got := NewPairs(shared, rowsOf("w", 0, 1, 2, 3)).Most(); got != want {
			t.Errorf("4 of %d: got %v, want %v", n, got, want)
		}
	}
}
