package analysis

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"replayd/internal/trace"

	gocmp "github.com/google/go-cmp/cmp"
)

// naiveContext computes AIPerf's context: pairs of position and id that occur in more than one row.
func naiveContext(rows []trace.Record, size int) (context, own []int) {
	pairs := map[[2]uint64]int{}
	for _, r := range rows {
		for i, id := range r.Blocks {
			pairs[[2]uint64{uint64(i), id}]++
		}
	}
	for _, r := range rows {
		if r.InputTokens == 0 {
			continue
		}
		shared := 0
		for i, id := range r.Blocks {
			if pairs[[2]uint64{uint64(i), id}] > 1 {
				shared += min(size, r.InputTokens-i*size)
			}
		}
		context, own = append(context, shared), append(own, r.InputTokens-shared)
	}
	return context, own
}

// checkNaively computes the other figures from rows in memory, by their definitions.
func checkNaively(t *testing.T, f *trace.File) {
	t.Helper()
	a, rows := analyze(t, f), allRows(t, f)
	var total, sizes []int
	var gaps, fronts []float64
	intervals := map[time.Duration]*Interval{}
	seen, known := map[uint64]bool{}, map[string]int{}
	var hits int64
	parents, nodes, depth := map[string]bool{}, map[string]int{}, 0
	for i, r := range rows {
		var had int64
		if r.InputTokens > 0 {
			total = append(total, r.InputTokens+r.OutputTokens)
			place, _ := slices.BinarySearch([]int{5e3, 1e4, 2e4, 4e4, 6e4, 8e4, 1e5}, r.InputTokens+r.OutputTokens+1)
			sizes = append(sizes, place)
		}
		front, hit := len(r.Blocks), true
		key, parent := "", ""
		for k, id := range r.Blocks {
			if front == len(r.Blocks) && !seen[id] {
				front = k
			}
			parent, key = key, key+fmt.Sprint(id, " ")
			parents[parent] = true
			nodes[key]++
			tokens := min(f.Stats.BlockTokens, r.InputTokens-k*f.Stats.BlockTokens)
			longest, came := known[key]
			if hit = hit && came; hit {
				had += int64(min(tokens, longest))
			}
			known[key] = max(longest, tokens)
		}
		depth = max(depth, len(r.Blocks))
		for _, id := range r.Blocks {
			seen[id] = true
		}
		if len(r.Blocks) > 0 {
			fronts = append(fronts, float64(front)/float64(len(r.Blocks)))
		}
		hits += had
		if i > 0 && f.Stats.HasTimestamps {
			gaps = append(gaps, (r.Offset - rows[i-1].Offset).Seconds())
		}
		from := r.Offset.Truncate(a.Interval)
		if intervals[from] == nil {
			intervals[from] = &Interval{From: from, To: min(from+a.Interval, f.Stats.Span)}
		}
		v := intervals[from]
		v.Requests++
		v.InputTokens += int64(r.InputTokens)
		v.OutputTokens += int64(r.OutputTokens)
		v.CacheTokens += had
	}
	context, own := naiveContext(rows, f.Stats.BlockTokens)
	check := func(name string, got, want any) {
		t.Helper()
		if diff := gocmp.Diff(want, got, approximately(1e-9)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	check("total", a.Total, summarize(total))
	check("context", a.Context, summarize(context))
	check("unique prompt", a.UniquePrompt, summarize(own))
	check("hit rates", a.HitRate, summarize(fronts))
	check("gaps", a.Gaps, summarize(gaps))
	for i, z := range a.Sizes {
		n := 0
		for _, place := range sizes {
			if place == i {
				n++
			}
		}
		check(fmt.Sprint("size ", z.From), z.Rows, int64(n))
	}
	var filled []Interval
	for i, v := range a.Intervals {
		if i > 0 && v.From != a.Intervals[i-1].To {
			t.Errorf("interval %d begins at %v, want %v", i, v.From, a.Intervals[i-1].To)
		}
		if v.Requests > 0 {
			filled = append(filled, v)
		}
	}
	if f.Stats.HasTimestamps {
		var want []Interval
		for _, v := range intervals {
			want = append(want, *v)
		}
		slices.SortFunc(want, func(a, b Interval) int { return cmp.Compare(a.From, b.From) })
		check("intervals", filled, want)
	}
	check("hits", f.Stats.Prefix.HitTokens, hits)
	if len(nodes) > 0 {
		want := Tree{MaxDepth: depth, MeanDepth: float64(f.Stats.Prefix.Blocks) / float64(len(fronts))}
		for key, n := range nodes {
			if !parents[key] {
				want.Leaves++
			}
			if n > 1 {
				want.Reused++
			}
			if strings.Count(key, " ") == 1 {
				want.Roots++
			}
		}
		check("tree", a.Tree, want)
		_, all := a.LRU.Hits(math.MaxInt)
		check("endless cache", all, hits)
	}
}

// randomTrace has ids at several positions, cut blocks, rows without ids and rows without lengths.
func randomTrace(rng *rand.Rand, size int) string {
	var b strings.Builder
	span := 1 + rng.IntN(4_000_000)
	timed := rng.IntN(5) > 0
	for range 2 + rng.IntN(200) {
		b.WriteString(`{"output_length":` + fmt.Sprint(1+rng.IntN(90_000)))
		if timed {
			fmt.Fprintf(&b, `,"timestamp":%d`, rng.IntN(span))
		}
		if rng.IntN(10) == 0 {
			b.WriteString(`,"text_input":"x"}` + "\n")
			continue
		}
		tokens := 1 + rng.IntN(6*size)
		fmt.Fprintf(&b, `,"input_length":%d`, tokens)
		if rng.IntN(5) > 0 {
			ids := make([]string, (tokens+size-1)/size)
			for i := range ids {
				ids[i] = fmt.Sprint(rng.IntN(3) + i/2*2)
			}
			fmt.Fprintf(&b, `,"hash_ids":[%s]`, strings.Join(ids, ","))
		}
		b.WriteString("}\n")
	}
	return b.String()
}

func TestAnalysisASecondWay(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 32))
	for range 40 {
		checkNaively(t, openFile(t, randomTrace(rng, 32), trace.Options{BlockTokens: 32}))
		if t.Failed() {
			t.FailNow()
		}
	}
}

func TestAnalysisOfPublicTraces(t *testing.T) {
	for _, name := range []string{"mooncake_conversation.jsonl", "azure_2023_conv.csv"} {
		t.Run(name, func(t *testing.T) {
			f, err := trace.Open(t.Context(), publicTrace(t, name), trace.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			checkNaively(t, f)
		})
	}
}
