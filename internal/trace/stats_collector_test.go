package trace

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"replayd/internal/stats"
	"replayd/internal/trace/prefix"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// near tolerates the rounding of published figures.
func near(digits float64) cmp.Option { return cmpopts.EquateApprox(0, digits) }

func TestFiveRows(t *testing.T) {
	f := open(t, `{"input_length":1024,"output_length":20,"hash_ids":[1,2]}
{"input_length":1536,"output_length":30,"hash_ids":[1,2,3]}
{"input_length":1024,"output_length":25,"hash_ids":[1,2]}
{"input_length":1536,"output_length":40,"hash_ids":[2,3,4]}
{"input_length":1024,"output_length":22,"hash_ids":[1,3]}`, Options{})
	want := prefix.Sharing{
		Blocks: 12, IDs: 4, Moved: 2, // 2 begins a row and follows 1; 3 follows 1, 2 and 1,2
		HitBlocks: 5, HitTokens: 5 * 512, HitBlockRatio: 5.0 / 12, HitTokenRatio: 5.0 * 512 / 6144,
		Unique: 7, SharedRoots: 1, CacheHitRate: (0 + 2.0/3 + 1 + 2.0/3 + 1) / 5, ReuseRatio: 7.0 / 12,
	}
	if diff := cmp.Diff(want, f.Stats.Prefix, near(1e-12)); diff != "" || f.Stats.BlockTokens != 512 || f.Stats.Requests != 5 {
		t.Errorf("blocks of %d, %d requests, %s", f.Stats.BlockTokens, f.Stats.Requests, diff)
	}
}

// An id with two lengths is one prefix. A hit counts the shorter length.
func TestHitsOfCutBlocks(t *testing.T) {
	for _, c := range []struct {
		lines  string
		tokens int64
	}{
		{`{"input_length":655,"hash_ids":[46,47]}` + "\n" + `{"input_length":672,"hash_ids":[46,47]}`, 655},
		{`{"input_length":672,"hash_ids":[46,47]}` + "\n" + `{"input_length":655,"hash_ids":[46,47]}`, 655},
		{`{"input_length":655,"hash_ids":[46,47]}` + "\n" + `{"input_length":1124,"hash_ids":[46,47,48]}`, 655},
		{`{"input_length":655,"hash_ids":[46,47]}` + "\n" + `{"input_length":5}` + "\n" + `{"input_length":655,"hash_ids":[46,48]}`, 512},
	} {
		f := open(t, c.lines, Options{})
		if got := f.Stats.Prefix; got.HitTokens != c.tokens || got.HitTokenRatio != float64(c.tokens)/float64(f.Stats.Input.Sum) {
			t.Errorf("%s: got %d tokens, ratio %v, want %d", c.lines, got.HitTokens, got.HitTokenRatio, c.tokens)
		}
	}
}

// naivePrefix computes the figures from sets of whole prefixes, by their definitions.
func naivePrefix(rows []Record, size int) prefix.Sharing {
	var p prefix.Sharing
	ids, moved, lengths := map[uint64]string{}, map[uint64]bool{}, map[uint64]map[int]bool{}
	count, longest := map[string]int{}, map[string]int{}
	var inputs, withIDs int
	for _, r := range rows {
		inputs += r.InputTokens
		if len(r.Blocks) == 0 {
			continue
		}
		withIDs++
		p.Blocks += int64(len(r.Blocks))
		front, hit := 0, true
		for i, id := range r.Blocks {
			before, known := ids[id]
			if known && front == i {
				front++
			}
			key, tokens := fmt.Sprint(r.Blocks[:i+1]), min(size, r.InputTokens-i*size)
			if !known {
				ids[id], lengths[id] = key, map[int]bool{}
			} else if before != key {
				moved[id] = true
			}
			lengths[id][tokens] = true
			if hit = hit && count[key] > 0; hit {
				p.HitBlocks++
				p.HitTokens += int64(min(tokens, longest[key]))
			}
			count[key]++
			longest[key] = max(longest[key], tokens)
			if i == 0 && count[key] == 2 {
				p.SharedRoots++
			}
		}
		p.CacheHitRate += float64(front) / float64(len(r.Blocks))
	}
	p.IDs, p.Moved, p.Unique = len(ids), len(moved), len(count)
	for _, l := range lengths {
		if len(l) > 1 {
			p.Resized++
		}
	}
	reused := 0
	for _, n := range count {
		if n > 1 {
			reused += n
		}
	}
	p.HitBlockRatio = float64(p.HitBlocks) / float64(p.Blocks)
	p.HitTokenRatio = float64(p.HitTokens) / float64(inputs)
	p.CacheHitRate /= float64(withIDs)
	p.ReuseRatio = float64(reused) / float64(p.Blocks)
	return p
}

func TestPrefixFiguresASecondWay(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 30 {
		var b strings.Builder
		for range 1 + rng.IntN(200) {
			tokens := 1 + rng.IntN(160)
			at := rng.IntN(1000) // not sorted: figures follow due order
			fmt.Fprintf(&b, `{"timestamp":%d,"input_length":%d`, at, tokens)
			if rng.IntN(5) > 0 {
				ids := make([]string, blocksOf(tokens, 32))
				for i := range ids {
					ids[i] = fmt.Sprint(rng.IntN(3) + i/2*2)
				}
				fmt.Fprintf(&b, `,"hash_ids":[%s]`, strings.Join(ids, ","))
			}
			b.WriteString("}\n")
		}
		b.WriteString(`{"timestamp":1000,"input_length":1,"hash_ids":[0]}` + "\n")
		f := open(t, b.String(), Options{BlockTokens: 32})
		if diff := cmp.Diff(naivePrefix(read(t, f, 0), 32), f.Stats.Prefix, near(1e-12)); diff != "" {
			t.Fatal(diff)
		}
	}
}

func TestDistribution(t *testing.T) {
	for _, c := range []struct {
		values []int
		want   stats.Summary
	}{
		{nil, stats.Summary{}},
		{[]int{7}, stats.Summary{Count: 1, Sum: 7, Mean: 7, P25: 7, P50: 7, P75: 7, P90: 7, P99: 7, Min: 7, Max: 7}},
		{[]int{4, 1}, stats.Summary{
			Count: 2, Sum: 5, Mean: 2.5, StdDev: 1.5, P25: 1.75, P50: 2.5, P75: 3.25, P90: 3.7,
			P99: 3.97, Min: 1, Max: 4,
		}},
		// ranks 0.75, 1.5, 2.25, 2.7, 2.97 of 0, 10, 20000, MaxTokens
		{[]int{20000, 0, MaxTokens, 10}, stats.Summary{
			Count: 4, Sum: 20010 + MaxTokens, Mean: (20010.0 + MaxTokens) / 4,
			StdDev: 7_261_864.0235649, P25: 7.5, P50: 10005, P75: 20000 + 0.25*(MaxTokens-20000), P90: 20000 + 0.7*(MaxTokens-20000), P99: 20000 + 0.97*(MaxTokens-20000), Min: 0, Max: MaxTokens,
		}},
	} {
		var got stats.Counts
		for _, v := range c.values {
			got.Add(v)
		}
		if diff := cmp.Diff(c.want, got.Summary(), near(1e-6)); diff != "" {
			t.Errorf("%v: %s", c.values, diff)
		}
	}
}

func TestTimes(t *testing.T) {
	// Gaps 0, 10, 0, 20, 10: mean 8, mean of squares 120.
	want := Stats{
		HasTimestamps: true, First: 5 * ms, Span: 45 * ms, Instants: 4, Burst: 2, Tick: 10 * ms,
		GapCV: math.Sqrt(120-64) / 8, Rate: 6 / 0.040,
	}
	for _, at := range [][]int{{5, 5, 15, 15, 35, 45}, {45, 15, 5, 35, 15, 5}} {
		s := open(t, jsonl(at), Options{}).Stats
		got := Stats{
			HasTimestamps: s.HasTimestamps, First: s.First, Span: s.Span, Instants: s.Instants, Burst: s.Burst, Tick: s.Tick,
			GapCV: s.GapCV, Rate: s.Rate,
		}
		if diff := cmp.Diff(want, got, near(1e-12)); diff != "" {
			t.Errorf("%v: %s", at, diff)
		}
	}
	one := open(t, jsonl([]int{5}), Options{}).Stats
	if one.Rate != 0 || one.GapCV != 0 || one.Tick != 0 || one.Instants != 1 || one.Span != 5*ms {
		t.Errorf("one row: got %+v, want no rate and no gaps", one)
	}
}

func TestGapVariationASecondWay(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	at := make([]int, 5000)
	for i := range at {
		at[i] = 1_696_000_000_000 + rng.IntN(3_600_000)
	}
	slices.Sort(at)
	var sum, squares float64
	for i := range at[1:] {
		sum += float64(at[i+1] - at[i])
	}
	mean := sum / float64(len(at)-1)
	for i := range at[1:] {
		squares += math.Pow(float64(at[i+1]-at[i])-mean, 2)
	}
	want := math.Sqrt(squares/float64(len(at)-1)) / mean
	if got := open(t, jsonl(at), Options{}).Stats.GapCV; math.Abs(got-want) > 1e-9 {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestFiguresOfMooncake(t *testing.T) {
	f, err := Open(t.Context(), realTrace(t, "mooncake_conversation.jsonl"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	exact := Stats{
		Path: f.Stats.Path, SHA256: f.Stats.SHA256, Bytes: 3_029_533, // properties of the file
		GapCV: f.Stats.GapCV, Curve: f.Stats.Curve, // not published, like some lengths below; other tests check them
		Format: Mooncake, Requests: 12_031, Prompts: Prompts{Synthesized: 12_031},
		HasTimestamps: true, Sorted: true, Span: 3_536_999 * ms, Instants: 1_180, Burst: 28, Tick: 3 * time.Second, Rate: 3.40147,
		Input: stats.Summary{
			Count: 12_031, Sum: 144_793_823, Mean: 12_035.061, StdDev: f.Stats.Input.StdDev, P25: f.Stats.Input.P25, P50: 6_909, P75: f.Stats.Input.P75, P90: 27_367, P99: 85_400.4, Min: 891, Max: 126_195,
		},
		Output: stats.Summary{
			Count: 12_031, Sum: 4_122_048, Mean: 342.619, StdDev: f.Stats.Output.StdDev, P25: f.Stats.Output.P25, P50: 350, P75: f.Stats.Output.P75,
			P90: 597, P99: 1_118.5, Min: 1, Max: 2_000,
		},
		Balance:     [3]Balance{{2, 1.0124}, {4, 1.0211}, {8, 1.0364}},
		BlockTokens: 512, RowsWithIDs: 12_031,
		Prefix: prefix.Sharing{
			Blocks: 288_500, IDs: 182_790, HitBlocks: 105_710, HitTokens: 54_098_411, HitBlockRatio: 0.366412, HitTokenRatio: 0.373624,
			Unique: 182_790, SharedRoots: 1, CacheHitRate: 0.3842580875, ReuseRatio: 0.5194246101,
		},
	}
	rounded := f.Stats
	for of, digits := range map[*float64]int{
		&rounded.Rate: 5, &rounded.Input.Mean: 3, &rounded.Output.Mean: 3, &rounded.Prefix.HitBlockRatio: 6, &rounded.Prefix.HitTokenRatio: 6,
		&rounded.Prefix.CacheHitRate: 10, &rounded.Prefix.ReuseRatio: 10,
		&rounded.Balance[0].Largest: 4, &rounded.Balance[1].Largest: 4, &rounded.Balance[2].Largest: 4,
	} {
		*of = math.Round(*of*math.Pow10(digits)) / math.Pow10(digits)
	}
	if diff := cmp.Diff(exact, rounded, near(1e-9)); diff != "" {
		t.Error(diff)
	}
}

func TestFiguresOfAzure(t *testing.T) {
	f, err := Open(t.Context(), realTrace(t, "azure_2023_conv.csv"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := f.Stats
	if s.Format != Azure || s.Requests != 19_366 || !s.Sorted || s.Input.Sum != 22_361_870 || s.Output.Sum != 4_088_665 ||
		s.Span.Round(10*ms) != 3_501_720*ms || math.Abs(s.GapCV-1.0942) > 0.00005 || s.RowsWithIDs != 0 || s.Prefix != (prefix.Sharing{}) {
		t.Errorf("got %+v", s)
	}
}

func TestTable(t *testing.T) {
	golden := func(name, path string, content []byte) {
		var got bytes.Buffer
		f, err := Open(t.Context(), "-", Options{Stdin: bytes.NewReader(content)})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		f.Stats.Path = path
		if err := f.Stats.WriteTable(&got); err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile(name, got.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got.String()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	mixed, err := os.ReadFile("testdata/mixed.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	golden("testdata/mixed.txt", "mixed.jsonl", mixed)
	golden("testdata/untimed.txt", "untimed.jsonl", []byte(`{"text_input":"x"}`))

	full := errors.New("disk full")
	if err := (Stats{}).WriteTable(failing{full}); !errors.Is(err, full) {
		t.Errorf("got %v, want %v", err, full)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// Shards are divided as they are played: the rows of a session stay together, and others go in turns.
func TestBalanceOfSessions(t *testing.T) {
	row := func(session string) string {
		return `{"input_length":50,"output_length":50,"session_id":"` + session + `"}` + "\n"
	}
	f := open(t, row("a")+row("a")+row("a")+row("a"), Options{})
	if got := f.Stats.Balance; got[0].Largest != 2 || got[1].Largest != 4 || got[2].Largest != 8 {
		t.Errorf("one session: want it whole in one of 2, 4 and 8 shards, got %+v", got)
	}
	f = open(t, strings.Repeat(`{"input_length":50,"output_length":50}`+"\n", 8), Options{})
	if got := f.Stats.Balance; got[0].Largest != 1 || got[1].Largest != 1 || got[2].Largest != 1 {
		t.Errorf("rows without sessions: want equal shards, got %+v", got)
	}
}

// Gaps are those between instants, in due order.
func TestGaps(t *testing.T) {
	const row = `{"timestamp": %d, "input_length": 1, "output_length": 1, "hash_ids": [1]}` + "\n"
	for name, order := range map[string][]int{"sorted": {0, 0, 2001, 4001, 9000}, "unsorted": {4001, 0, 9000, 2001, 0}} {
		content := ""
		for _, at := range order {
			content += fmt.Sprintf(row, at)
		}
		const ms = time.Millisecond
		want := []Gap{{0, 2001 * ms, 2}, {4001 * ms, 9000 * ms, 1}}
		if got := open(t, content, Options{Gap: 2 * time.Second}).Stats.Gaps; !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
		if got := open(t, content, Options{}).Stats.Gaps; len(got) > 0 {
			t.Errorf("%s: got %v without a gap in the options, want none", name, got)
		}
	}
}
