package synth

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"replayd/internal/trace"
)

func rescaled(t *testing.T, rows []trace.Record, s RescaleOptions) []trace.Record {
	t.Helper()
	before := fmt.Sprint(rows)
	out, err := Rescale(rows, s)
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(rows) != before {
		t.Fatalf("%+v changed the rows that it was given", s)
	}
	for i, r := range out {
		if want := blocks(r.InputTokens, s.BlockTokens); r.InputTokens < 1 || len(r.Blocks) != want {
			t.Fatalf("%+v, row %d: %d ids for %d tokens, want %d", s, i, len(r.Blocks), r.InputTokens, want)
		}
	}
	return out
}

// lines returns rows with blocks of 16 tokens, one row for each element of tokens and ids.
func lines(tokens []int, ids ...[]uint64) []trace.Record {
	var rows []trace.Record
	for i, n := range tokens {
		rows = append(rows, trace.Record{Number: i, Line: i + 1, InputTokens: n, OutputTokens: 9, Blocks: ids[i]})
	}
	return rows
}

// The first two rows share blocks 1 and 2, and the third shares block 1 with them. The fourth has only blocks 1 and
// 2, and the fifth is a shorter form of the fourth.
var shared = lines([]int{40, 48, 33, 32, 20},
	[]uint64{1, 2, 3}, []uint64{1, 2, 4}, []uint64{1, 5, 6}, []uint64{1, 2}, []uint64{1, 2})

func TestRescale(t *testing.T) {
	for _, c := range []struct {
		name  string
		scale RescaleOptions
		want  []trace.Record
	}{
		{"nothing", RescaleOptions{}, shared},
		{"times one", RescaleOptions{Speedup: 1, PrefixLen: 1, PromptLen: 1, PrefixRoot: 1, MaxInput: 48, MaxOutput: 9}, shared},
		{"prefixes doubled", RescaleOptions{PrefixLen: 2}, lines([]int{72, 80, 49, 64, 40},
			[]uint64{1, 7, 2, 8, 3}, []uint64{1, 7, 2, 8, 4}, []uint64{1, 7, 5, 6}, []uint64{1, 7, 2, 8}, []uint64{1, 7, 2})},
		{"prefixes halved", RescaleOptions{PrefixLen: 0.5}, lines([]int{24, 32, 33, 16, 16}, // 1 or 2 blocks become 1
			[]uint64{1, 3}, []uint64{1, 4}, []uint64{1, 5, 6}, []uint64{1}, []uint64{1})},
		{"prefixes gone", RescaleOptions{PrefixLen: 0.1}, lines([]int{8, 16, 17, 1, 1},
			[]uint64{3}, []uint64{4}, []uint64{5, 6}, []uint64{2}, []uint64{2})},
		{"prompts tripled", RescaleOptions{PromptLen: 3}, lines([]int{56, 80, 67, 32, 20},
			[]uint64{1, 2, 3, 7}, []uint64{1, 2, 4, 8, 9}, []uint64{1, 5, 6, 10, 11}, []uint64{1, 2}, []uint64{1, 2})},
		{"prompts shrunk", RescaleOptions{PromptLen: 0.01}, lines([]int{33, 33, 17, 32, 20},
			[]uint64{1, 2, 3}, []uint64{1, 2, 4}, []uint64{1, 5}, []uint64{1, 2}, []uint64{1, 2})},
		{"output capped", RescaleOptions{MaxOutput: 5}, func() []trace.Record {
			rows := slices.Clone(shared)
			for i := range rows {
				rows[i].OutputTokens = 5
			}
			return rows
		}()},
		{"long ones left out", RescaleOptions{MaxInput: 33}, shared[2:]},
		{"too long when doubled", RescaleOptions{PrefixLen: 2, MaxInput: 64}, lines([]int{0, 0, 49, 64, 40}, nil, nil,
			[]uint64{1, 7, 5, 6}, []uint64{1, 7, 2, 8}, []uint64{1, 7, 2})[2:]},
	} {
		c.scale.BlockTokens = 16
		if got := rescaled(t, shared, c.scale); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", c.name, got, c.want)
		}
	}
}

func TestRescaleKeepsOtherRows(t *testing.T) {
	rows := []trace.Record{
		{Offset: 3 * time.Second, Text: "as it is"},
		{Offset: 5 * time.Second, InputTokens: 30, Delay: time.Second, Session: "a"},
		{Offset: 7*time.Second + 1, InputTokens: 30, Parts: []trace.Part{{Role: "user", ID: 1, Tokens: 30}}},
		{InputTokens: 50, Parts: []trace.Part{{Role: "user", ID: 1, Tokens: 50}}},
	}
	got, err := Rescale(rows, RescaleOptions{Speedup: 2, PrefixLen: 3, PromptLen: 1.25, MaxInput: 40, PrefixRoot: 9})
	want := slices.Clone(rows[:3])
	want[0].Offset, want[1].Offset, want[2].Offset = 1500*time.Millisecond, 2500*time.Millisecond, 3500*time.Millisecond+1
	want[1].InputTokens = 38 // rounded from 37.5
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
}

// made returns random rows that share prefixes. If moves is true, an id may occur at several positions.
func made(rng *rand.Rand, rows int, moves bool) []trace.Record {
	out := make([]trace.Record, rows)
	fresh := uint64(1000)
	for i := range out {
		r := trace.Record{Number: i, Line: i + 1, InputTokens: 1 + rng.IntN(160), OutputTokens: 1}
		path := uint64(0)
		alone := rng.IntN(6)
		for depth := range blocks(r.InputTokens, 16) {
			id := uint64(rng.IntN(2))
			switch {
			case depth > alone:
				fresh++
				id = fresh
			case !moves:
				path = path*2 + id + 1 // a separate id for each path
				id = path
			}
			r.Blocks = append(r.Blocks, id)
		}
		out[i] = r
	}
	return out
}

// After scaling, rows share exactly the scaled length of the prefix that they shared before.
func TestRescaleKeepsWhatIsShared(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		rows := made(rng, 40, rng.IntN(2) == 0)
		s := RescaleOptions{PrefixLen: 0.1 + 3*rng.Float64(), PromptLen: 0.1 + 3*rng.Float64(), BlockTokens: 16}
		out := rescaled(t, rows, s)
		scaled := func(depth int) int { return int(math.Floor(float64(depth)*s.PrefixLen + 0.5)) }
		for i := range rows {
			depth := 0 // blocks shared with another row
			for j := range rows {
				c := common(rows[i].Blocks, rows[j].Blocks)
				if i == j {
					continue
				}
				depth = max(depth, c)
				got, want := common(out[i].Blocks, out[j].Blocks), min(scaled(c), len(out[i].Blocks), len(out[j].Blocks))
				if want == 0 && slices.Equal(rows[i].Blocks, rows[j].Blocks) {
					want = 1 // one token is left
				}
				if got != want {
					t.Fatalf("%+v: %v and %v share %d, want %d: %v and %v", s, rows[i].Blocks, rows[j].Blocks, got, want, out[i].Blocks, out[j].Blocks)
				}
			}
			own := rows[i].InputTokens - 16*depth
			want := float64(16*scaled(depth)) + math.Round(s.PromptLen*float64(own))
			if got := out[i].InputTokens; own > 0 && float64(got) != max(float64(16*scaled(depth)+1), want) {
				t.Fatalf("%+v: %d tokens with %d of their own became %d, want %v", s, rows[i].InputTokens, own, got, want)
			} else if ideal := s.PrefixLen * float64(rows[i].InputTokens); own <= 0 && math.Abs(float64(got)-ideal) > 24 {
				t.Fatalf("%+v: %d tokens, all shared, became %d, want about %v", s, rows[i].InputTokens, got, ideal)
			}
		}
	}
}

// hits returns the number of blocks that an infinite cache hits: blocks with a prefix that occurred before.
func hits(rows []trace.Record) (n int) {
	type block struct {
		before int
		id     uint64
	}
	seen := map[block]int{}
	for _, r := range rows {
		at := 0
		for _, id := range r.Blocks {
			next, known := seen[block{at, id}]
			if known {
				n++
			} else {
				next = len(seen) + 1
				seen[block{at, id}] = next
			}
			at = next
		}
	}
	return n
}

func TestRootsAreTreesApart(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	rows := made(rng, 400, true)
	for i := range rows {
		if i%4 == 0 {
			rows[i].Session = fmt.Sprint("s", i%40)
		}
	}
	single := hits(rows)
	for _, roots := range []int{2, 5, 50} {
		s := RescaleOptions{PrefixRoot: roots, BlockTokens: 16, Seed: 7}
		out := rescaled(t, rows, s)
		trees, tree := make([][]trace.Record, roots), map[uint64]int{}
		sessions := map[string]int{}
		for i, r := range out {
			k := s.tree(&rows[i])
			trees[k] = append(trees[k], rows[i])
			if r.InputTokens != rows[i].InputTokens || k == 0 && !slices.Equal(r.Blocks, rows[i].Blocks) {
				t.Fatalf("row %d in tree %d: %+v was %+v", i, k, r, rows[i])
			}
			for _, id := range r.Blocks {
				if other, known := tree[id]; known && other != k {
					t.Fatalf("id %d is in the trees %d and %d", id, k, other)
				}
				tree[id] = k
			}
			if other, known := sessions[r.Session]; known && r.Session != "" && other != k {
				t.Fatalf("session %s is in the trees %d and %d", r.Session, k, other)
			}
			sessions[r.Session] = k
		}
		want := 0
		for _, rows := range trees {
			want += hits(rows)
		}
		if got := hits(out); got != want || got >= single {
			t.Errorf("%d trees: %d blocks are hit, want %d, fewer than %d", roots, got, want, single)
		}
	}
}

func TestRescaleRefuses(t *testing.T) {
	for _, c := range []struct {
		s    RescaleOptions
		want string
	}{
		{
			RescaleOptions{Speedup: -1, PrefixLen: math.NaN(), PromptLen: 101, PrefixRoot: -1, MaxInput: -2, MaxOutput: 1 << 25, BlockTokens: -1},
			"speedup: want 0.001 to 1000, got -1\nprefix_len: want 0.01 to 100, got NaN\nprompt_len: want 0.01 to 100, got 101\n" +
				"prefix_root: want 1 to 1048576, or 0 for none, got -1\nmax_input: want 1 to 16777216, or 0 for none, got -2\n" +
				"max_output: want 1 to 16777216, or 0 for none, got 33554432\nblock_tokens: want 1 to 16777216, or 0 for none, got -1",
		},
		{RescaleOptions{}, "block_tokens: want an integer ≥ 1 for rows with ids, got 0"},
		{RescaleOptions{PromptLen: 3, BlockTokens: 16}, "line 2: want at most 16777216 tokens, got 50331648"},
		{RescaleOptions{Speedup: 0.001, BlockTokens: 16}, "line 2: want times of at most 2496600h0m0s, got 2920h0m0s at speedup 0.001"},
	} {
		rows := lines([]int{5, trace.MaxTokens}, []uint64{1}, nil)
		rows[1].Offset = 2920 * time.Hour
		got, err := Rescale(rows, c.s)
		if got != nil || err == nil || err.Error() != c.want {
			t.Errorf("%+v: got %v, %v\nwant %s", c.s, got, err, c.want)
		}
	}
}

func TestUnusedIdsAreUnused(t *testing.T) {
	rows := lines([]int{16, 16}, []uint64{math.MaxUint64}, []uint64{0})
	out := rescaled(t, rows, RescaleOptions{PromptLen: 2, BlockTokens: 16})
	if got := out[0].Blocks; !slices.Equal(got, []uint64{math.MaxUint64, 1}) {
		t.Errorf("got %v", got)
	}
}

// realRows returns the rows and statistics of Mooncake's conversation trace.
func realRows(t testing.TB) ([]trace.Record, trace.Stats) {
	t.Helper()
	dir := os.Getenv("REPLAYD_TRACES")
	if dir == "" {
		t.Skip("REPLAYD_TRACES is not set: it names the folder of the public traces")
	}
	return open(t, filepath.Join(dir, "mooncake_conversation.jsonl"))
}

func open(t testing.TB, path string) ([]trace.Record, trace.Stats) {
	t.Helper()
	f, err := trace.Open(t.Context(), path, trace.Options{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := f.Rows(0)
	if err != nil {
		t.Fatal(err)
	}
	var out []trace.Record
	for range f.Stats.Requests {
		r, err := rows.Next()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out, f.Stats
}

// written returns the statistics of a trace that has been written and read again.
func written(t *testing.T, rows []trace.Record) trace.Stats {
	t.Helper()
	path := filepath.Join(t.TempDir(), "trace.jsonl")
	if err := os.WriteFile(path, mooncake(t, rows), 0o600); err != nil {
		t.Fatal(err)
	}
	_, stats := open(t, path)
	return stats
}

// Doubled prefixes double the tokens that are hit, exactly. The rows' own tokens stay the same.
func TestRescaleOfARealTrace(t *testing.T) {
	rows, stats := realRows(t)
	if got := rescaled(t, rows, RescaleOptions{Speedup: 1, PrefixLen: 1, PromptLen: 1, PrefixRoot: 1, BlockTokens: 512}); !reflect.DeepEqual(got, rows) {
		t.Error("times one is not the trace")
	}
	// In this trace each id has one position, so a block is shared if its id occurs twice or more.
	uses := map[uint64]int{}
	for _, r := range rows {
		for _, id := range r.Blocks {
			uses[id]++
		}
	}
	common := 0
	for _, r := range rows {
		for i, id := range r.Blocks {
			if uses[id] > 1 {
				common += min(512, r.InputTokens-512*i)
			}
		}
	}
	sum := func(s trace.Stats) int64 { return s.Input.Sum }
	double := written(t, rescaled(t, rows, RescaleOptions{Speedup: 2, PrefixLen: 2, BlockTokens: 512}))
	if got, want := sum(double), sum(stats)+int64(common); got != want {
		t.Errorf("prefixes doubled: %d tokens, want %d", got, want)
	}
	if got, want := double.Prefix.HitTokens, 2*stats.Prefix.HitTokens; got != want {
		t.Errorf("prefixes doubled: %d tokens are hit, want %d", got, want)
	}
	if got, want := double.Span, stats.Span/2; got != want || double.Output != stats.Output || double.Requests != stats.Requests {
		t.Errorf("span %v, want %v; output %+v, want %+v", got, want, double.Output, stats.Output)
	}
	longer := written(t, rescaled(t, rows, RescaleOptions{PromptLen: 3, BlockTokens: 512}))
	if got, want := sum(longer), 3*sum(stats)-2*int64(common); got != want || longer.Prefix.HitTokens != stats.Prefix.HitTokens {
		t.Errorf("prompts tripled: %d tokens, want %d; %d are hit, want %d", got, want, longer.Prefix.HitTokens, stats.Prefix.HitTokens)
	}
	apart := written(t, rescaled(t, rows, RescaleOptions{PrefixRoot: 10, BlockTokens: 512}))
	if sum(apart) != sum(stats) || apart.Prefix.SharedRoots != 10 || apart.Prefix.HitTokens >= stats.Prefix.HitTokens {
		t.Errorf("ten roots: %d tokens and %+v", sum(apart), apart.Prefix)
	}
}

// A session that forks and joins keeps its waits at another speed, and its rows the earliest instants that these allow. What comes after a row
// that is left out comes after that row's parents.
func TestRescaleParents(t *testing.T) {
	const s = time.Second
	row := func(number, tokens int, at time.Duration, after ...trace.Edge) trace.Record {
		return trace.Record{Number: number, InputTokens: tokens, Offset: at, Session: "s", After: append([]trace.Edge{}, after...), Floating: len(after) > 0}
	}
	edge := func(row int, wait time.Duration) trace.Edge { return trace.Edge{Row: row, Wait: wait} }
	rows := []trace.Record{
		row(0, 10, 40*s),
		row(1, 50, 43*s, edge(0, 3*s)),
		row(2, 10, 45*s, edge(0, 5*s)),
		row(3, 10, 50*s, edge(1, 7*s), edge(2, 4*s)),
		row(4, 10, 90*s, edge(3, 2*s)),
	}
	rows[4].Floating = false // it has an instant of its own
	for _, c := range []struct {
		name  string
		scale RescaleOptions
		want  []trace.Record
	}{
		{"faster", RescaleOptions{Speedup: 4}, []trace.Record{
			row(0, 10, 10*s), row(1, 50, 13*s, edge(0, 3*s)), row(2, 10, 15*s, edge(0, 5*s)), row(3, 10, 20*s, edge(1, 7*s), edge(2, 4*s)),
			row(4, 10, 22*s+s/2, edge(3, 2*s)),
		}},
		{"a row of a fork left out", RescaleOptions{MaxInput: 40}, []trace.Record{
			row(0, 10, 40*s), row(2, 10, 45*s, edge(0, 5*s)), row(3, 10, 50*s, edge(0, 10*s), edge(2, 4*s)), row(4, 10, 90*s, edge(3, 2*s)),
		}},
		{"waits limited", RescaleOptions{Speedup: 4, Wait: func(d time.Duration) time.Duration { return min(d, s) }}, []trace.Record{
			row(0, 10, 10*s), row(1, 50, 11*s, edge(0, 3*s)), row(2, 10, 11*s, edge(0, 5*s)), row(3, 10, 12*s, edge(1, 7*s), edge(2, 4*s)),
			row(4, 10, 22*s+s/2, edge(3, 2*s)),
		}},
	} {
		c.want[len(c.want)-1].Floating = false
		before := fmt.Sprint(rows)
		got, err := Rescale(rows, c.scale)
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s:\nwant %+v\ngot  %+v, %v", c.name, c.want, got, err)
		}
		if fmt.Sprint(rows) != before {
			t.Errorf("%s changed the rows that it was given", c.name)
		}
	}
	// Without its first row the session begins with what came after it.
	first := []trace.Record{row(0, 50, 40*s), row(1, 10, 43*s, edge(0, 3*s)), row(2, 10, 44*s, edge(1, s))}
	got, err := Rescale(first, RescaleOptions{MaxInput: 40})
	if want := []trace.Record{row(1, 10, 43*s), row(2, 10, 44*s, edge(1, s))}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("want %+v, got %+v, %v", want, got, err)
	}
}

func BenchmarkRescale(b *testing.B) {
	rows, stats := realRows(b)
	for b.Loop() {
		if _, err := Rescale(rows, RescaleOptions{PrefixLen: 1.5, PromptLen: 1.2, PrefixRoot: 3, BlockTokens: stats.BlockTokens}); err != nil {
			b.Fatal(err)
		}
	}
}
