package synth

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"replayd/internal/trace"
)

func drafted(t *testing.T, d Draft) []trace.Record {
	t.Helper()
	if d.BlockTokens == 0 {
		d.BlockTokens = 16
	}
	rows, err := d.Records()
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range rows {
		if r.Number != i || r.Line != i+1 || r.Parts != nil || len(r.Blocks) != blocks(r.InputTokens, d.BlockTokens) ||
			r.Offset < 0 || r.Offset >= d.Span || r.Offset%time.Millisecond != 0 || i > 0 && r.Offset < rows[i-1].Offset {
			t.Fatalf("row %d: %+v", i, r)
		}
	}
	return rows
}

func TestDraftIsDueByItsRate(t *testing.T) {
	d := Draft{Rate: 4, Span: 2 * time.Second, Even: true, Rows: Synthetic{Input: Normal{20, 0}}}
	rows := drafted(t, d)
	for i, r := range rows {
		if want := time.Duration(i) * 250 * time.Millisecond; r.Offset != want {
			t.Errorf("row %d is due at %v, want %v", i, r.Offset, want)
		}
	}
	if len(rows) != 8 {
		t.Errorf("%d rows, want 8", len(rows))
	}
	// A Poisson process: mean and standard deviation of 100,000 gaps are a hundredth of a second, within four
	// standard errors.
	d = Draft{Rate: 100, Span: 1000 * time.Second, Rows: Synthetic{Input: Normal{20, 0}}}
	rows = drafted(t, d)
	if n := float64(len(rows)); math.Abs(n-100_000) > 4*math.Sqrt(100_000) {
		t.Errorf("%v rows, want about 100,000", n)
	}
	sum, squares := 0.0, 0.0
	for i := range rows[1:] {
		gap := (rows[i+1].Offset - rows[i].Offset).Seconds()
		sum += gap
		squares += gap * gap
	}
	n := float64(len(rows) - 1)
	mean := sum / n
	if cv := math.Sqrt(squares/n-mean*mean) / mean; math.Abs(cv-1) > 0.02 || rows[0].Offset != 0 {
		t.Errorf("the gaps vary by %v of their mean, want 1; the first row is due at %v", cv, rows[0].Offset)
	}
	if again := drafted(t, d); !reflect.DeepEqual(again, rows) {
		t.Error("one draft makes two traces")
	}
	d.Seed++
	if other := drafted(t, d); reflect.DeepEqual(other, rows) {
		t.Error("two seeds make one trace")
	}
}

// An infinite cache hits the configured share of the tokens, less the first use of each block.
func TestDraftSharesWhatIsAsked(t *testing.T) {
	for _, c := range []struct {
		rows   Synthetic
		tree   Tree
		roots  int     // first ids of more than one row
		unique float64 // upper bound of the blocks of the tree
	}{
		{Synthetic{Input: Normal{1600, 0}}, Tree{}, 0, 0},
		{Synthetic{Input: Normal{1600, 0}}, Tree{1, 1, 1, 0.5}, 1, 50},
		{Synthetic{Input: Normal{1600, 400}}, Tree{4, 1, 1, 0.7}, 4, 4 * 3000 * 0.7 / 16},
		{Synthetic{Input: Normal{1600, 0}}, Tree{3, 2, 3, 0.6}, 3, 3 * (1 + 2 + 4) * 20},
		{Synthetic{Input: Normal{1600, 0}, System: 400}, Tree{3, 2, 3, 0.6}, 1, 25 + 3*(1+2+4)*20},
		{Synthetic{Pairs: []Pair{{Normal{1600, 0}, Normal{1, 0}, 1}, {Normal{160, 0}, Normal{1, 0}, 1}}}, Tree{2, 1, 1, 0.5}, 2, 100},
		{Synthetic{Input: Normal{1600, 0}}, Tree{1, 1, 1, 1}, 1, 99}, // a row's last block is its own
	} {
		rows := drafted(t, Draft{Rate: 100, Span: 20 * time.Second, Rows: c.rows, Tree: c.tree, Seed: 1})
		tokens, share := 0.0, 0.0
		roots := map[uint64]int{}
		for _, r := range rows {
			tokens += float64(r.InputTokens)
			share += float64(c.rows.System) + c.tree.Shared*float64(r.InputTokens-c.rows.System)
			roots[r.Blocks[0]]++
		}
		several := 0
		for _, n := range roots {
			if n > 1 {
				several++
			}
		}
		hit := 16 * float64(hits(rows))
		// Prefixes are rounded to whole blocks: a row is off by at most half a block, or by its last block.
		if low, high := share-16*c.unique-16*float64(len(rows)), share+8*float64(len(rows)); hit < low || hit > high || several != c.roots {
			t.Errorf("%+v: %v of %v tokens are hit, want %v to %v; %d roots, want %d", c.tree, hit, tokens, low, high, several, c.roots)
		}
	}
}

// A tree with two roots, three branches and two levels has 2 first pieces and 6 second pieces.
func TestDraftsTreeBranches(t *testing.T) {
	rows := drafted(t, Draft{Rate: 100, Span: 20 * time.Second, Rows: Synthetic{Input: Normal{160, 0}}, Tree: Tree{2, 3, 2, 0.8}})
	var at [10]map[uint64]bool
	for _, r := range rows {
		for i, id := range r.Blocks {
			if at[i] == nil {
				at[i] = map[uint64]bool{}
			}
			at[i][id] = true
		}
	}
	for i, want := range [10]int{2, 2, 2, 2, 6, 6, 6, 6, len(rows), len(rows)} {
		if len(at[i]) != want {
			t.Errorf("%d ids at place %d, want %d", len(at[i]), i, want)
		}
	}
}

func TestDraftsTurnsGrow(t *testing.T) {
	rows := drafted(t, Draft{Rate: 5, Span: 100 * time.Second, Rows: Synthetic{
		Input: Normal{40, 20}, Output: Normal{9, 3}, Turns: Normal{4, 1}, Delay: 2 * time.Second, DelayStddev: time.Second, System: 50,
	}})
	last := map[string]trace.Record{}
	for i, r := range rows {
		before, later := last[r.Session]
		last[r.Session] = r
		if !later {
			if r.Delay != 0 || r.Turn != 0 {
				t.Fatalf("row %d: %+v", i, r)
			}
			continue
		}
		full := before.InputTokens / 16
		if got := common(r.Blocks, before.Blocks); got != full || r.Offset != before.Offset || r.Delay%time.Millisecond != 0 ||
			r.InputTokens <= before.InputTokens+before.OutputTokens {
			t.Fatalf("row %d: %+v has %d blocks of %+v, want %d", i, r, got, before, full)
		}
	}
	if len(last) < 300 {
		t.Errorf("%d conversations, want about 500", len(last))
	}
}

func TestDraftCheck(t *testing.T) {
	good := Draft{Rate: 1, Span: time.Second, BlockTokens: 16, Rows: Synthetic{Input: Normal{1, 0}}}
	for _, c := range []struct {
		name   string
		change func(*Draft)
		want   string
	}{
		{"nothing", func(*Draft) {}, ""},
		{
			"all", func(d *Draft) { *d = Draft{Tree: Tree{Roots: 1}} },
			"rate: want more than 0 requests per second, got 0\nspan: want more than 0s, got 0s\n" +
				"block_tokens: want 1 to 16777216, got 0\ninput: want a mean of 1 to 16777216, got 0\n" +
				"tree.shared: want more than 0, and at most 1, of a prompt's tokens, got 0",
		},
		{"rate", func(d *Draft) { d.Rate = math.Inf(1) }, "rate: want more than 0 requests per second, got +Inf"},
		{
			"rows", func(d *Draft) { d.Span, d.Rows.Turns.Mean = 3000*time.Hour, 2 },
			"span: want at most 10000000 rows, got about 21600000",
		},
		{"users", func(d *Draft) { d.Rows.Users = 3 }, "users: want none, got 3"},
		{"tree", func(d *Draft) { d.Tree = Tree{2, 0, 1, 0.5} }, "tree: want roots, branching and depth ≥ 1, and at most 1099511627776 paths, got 2, 0 and 1"},
		{"paths", func(d *Draft) { d.Tree = Tree{2, 1024, 5, 0.5} }, "tree: want roots, branching and depth ≥ 1, and at most 1099511627776 paths, got 2, 1024 and 5"},
	} {
		d := good
		c.change(&d)
		rows, err := d.Records()
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != c.want || err != nil && rows != nil {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, strings.ReplaceAll(got, "\n", "\n     "), c.want)
		}
	}
}
