package trace

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
)

const fiveRows = `{"timestamp":0,"input_length":1024,"output_length":20,"hash_ids":[1,2]}
{"timestamp":1000,"input_length":1536,"output_length":30,"hash_ids":[1,2,3]}
{"timestamp":2000,"input_length":1024,"output_length":25,"hash_ids":[1,2]}
{"timestamp":3000,"input_length":1536,"output_length":40,"hash_ids":[2,3,4]}
{"timestamp":4000,"input_length":1024,"output_length":22,"hash_ids":[1,3]}
`

func analyze(t testing.TB, f *File, caches ...int) Analysis {
	t.Helper()
	a, err := f.Analyze(t.Context(), caches)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// summarize is a Summary from sorted values, as numpy's functions of the same names have it.
func summarize[T int | float64](values []T) Summary {
	if len(values) == 0 {
		return Summary{}
	}
	sorted := slices.Sorted(slices.Values(values))
	at := func(percent float64) float64 {
		rank := float64(len(sorted)-1) * percent / 100
		low := int(rank)
		high := min(low+1, len(sorted)-1)
		return float64(sorted[low]) + (rank-float64(low))*float64(sorted[high]-sorted[low])
	}
	s := Summary{
		Count: int64(len(sorted)), Min: float64(sorted[0]), Max: float64(sorted[len(sorted)-1]),
		P25: at(25), P50: at(50), P75: at(75), P90: at(90), P99: at(99),
	}
	for _, v := range sorted {
		s.Mean += float64(v)
	}
	s.Mean /= float64(len(sorted))
	for _, v := range sorted {
		s.StdDev += (float64(v) - s.Mean) * (float64(v) - s.Mean)
	}
	s.StdDev = math.Sqrt(s.StdDev / float64(len(sorted)))
	return s
}

// AIPerf's figures of the five rows, by its definitions: row 4 begins with another root, and shares only the 3 at its second place.
func TestAIPerfOfFiveRows(t *testing.T) {
	a := analyze(t, open(t, fiveRows, Options{}))
	want := []Named{
		{"Input length", summarize([]int{1024, 1536, 1024, 1536, 1024})},
		{"Context length", summarize([]int{1024, 1024, 1024, 512, 1024})},
		{"Unique prompt length", summarize([]int{0, 512, 0, 1024, 0})},
		{"Output length", summarize([]int{20, 30, 25, 40, 22})},
		{"Theoretical hit rate", summarize([]float64{0, 2. / 3, 1, 2. / 3, 1})},
	}
	if diff := gocmp.Diff(want, a.AIPerf(), near(1e-12)); diff != "" {
		t.Error(diff)
	}
}

// A script that reads AIPerf's analysis.json finds every field of its AnalysisStats and MetricStats.
func TestJSONHasAIPerfsNames(t *testing.T) {
	decode := func(content string) map[string]any {
		var b bytes.Buffer
		if err := analyze(t, open(t, content, Options{})).WriteJSON(&b); err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := json.Unmarshal(b.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		return got
	}
	got := decode(fiveRows)
	for name, want := range map[string]float64{
		"total_requests": 5, "unique_prefixes": 7, "num_prefix_groups": 1, "cache_hit_rate": 2. / 3, "prefix_reuse_ratio": 7. / 12,
		"min_isl": 1024, "max_isl": 1536, "avg_isl": 1228.8, "min_osl": 20, "max_osl": 40, "avg_osl": 27.4,
	} {
		if v, ok := got[name].(float64); !ok || math.Abs(v-want) > 1e-10 {
			t.Errorf("%s: got %v, want %.10f", name, got[name], want)
		}
	}
	stats := []string{"isl_stats", "osl_stats", "context_length_stats", "unique_prompt_length_stats", "hit_rate_stats"}
	want := map[string][]string{}
	for _, name := range stats {
		want[name] = []string{"max", "mean", "median", "min", "p25", "p75", "std_dev"}
	}
	for name, keys := range want {
		m, _ := got[name].(map[string]any)
		var found []string
		for key := range m {
			found = append(found, key)
		}
		slices.Sort(found)
		if !slices.Equal(found, keys) {
			t.Errorf("%s: got %v, want %v", name, found, keys)
		}
	}
	texts := decode(`{"text_input":"x"}`)
	for _, name := range stats {
		if v, ok := texts[name]; !ok || v != nil {
			t.Errorf("%s of no lengths: got %v, want null", name, v)
		}
	}
}

// naiveContext is AIPerf's: repeated pairs of place and id, of all rows.
func naiveContext(rows []Record, size int) (context, own []int) {
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

// The rest from rows in memory, each by the words of its definition.
func checkNaively(t *testing.T, f *File) {
	t.Helper()
	a, rows := analyze(t, f), read(t, f, 0)
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
		if diff := gocmp.Diff(want, got, near(1e-9)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	check("total", a.Total.summary(), summarize(total))
	check("context", a.Context.summary(), summarize(context))
	check("unique prompt", a.UniquePrompt.summary(), summarize(own))
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
		check("hits over time", sum(a.CurveHits), hits)
		check("seconds", a.Seconds, naiveDispersion(rows, time.Second))
		check("minutes", a.Minutes, naiveDispersion(rows, time.Minute))
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

func naiveDispersion(rows []Record, window time.Duration) Dispersion {
	first, length := rows[0].Offset, rows[len(rows)-1].Offset-rows[0].Offset
	d := Dispersion{Window: window, Windows: int64(length / window)}
	counts := make([]float64, d.Windows)
	for _, r := range rows {
		if i := int64((r.Offset - first) / window); i < d.Windows {
			counts[i]++
		}
	}
	if len(counts) == 0 {
		return d
	}
	s := summarize(counts)
	d.Mean, d.Peak = s.Mean, int64(s.Max)
	d.Index, d.PeakToMean = s.StdDev*s.StdDev/s.Mean, s.Max/s.Mean
	return d
}

// randomTrace has ids that stand in several places, cut blocks, rows without ids and rows without lengths.
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
			ids := make([]string, blocksOf(tokens, size))
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
		checkNaively(t, open(t, randomTrace(rng, 32), Options{BlockTokens: 32}))
		if t.Failed() {
			t.FailNow()
		}
	}
}

func TestAnalysisOfPublicTraces(t *testing.T) {
	for _, name := range []string{"mooncake_conversation.jsonl", "azure_2023_conv.csv"} {
		t.Run(name, func(t *testing.T) {
			f, err := Open(t.Context(), realTrace(t, name), Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			checkNaively(t, f)
		})
	}
}

func TestIntervals(t *testing.T) {
	for _, c := range []struct {
		last  time.Duration
		width time.Duration
		count int
	}{
		{0, 5 * time.Minute, 1},
		{5*time.Minute - ms, 5 * time.Minute, 1},
		{5 * time.Minute, 5 * time.Minute, 2},
		{24*time.Hour - ms, 5 * time.Minute, 288},
		{24 * time.Hour, 10 * time.Minute, 145},
		{365 * 24 * time.Hour, 2560 * time.Minute, 206},
	} {
		a := analyze(t, open(t, jsonl([]int{0, int(c.last / ms)}), Options{}))
		if a.Interval != c.width || len(a.Intervals) != c.count {
			t.Errorf("until %v: %d intervals of %v, want %d of %v", c.last, len(a.Intervals), a.Interval, c.count, c.width)
		}
	}
	late := analyze(t, open(t, jsonl([]int{3_601_000, 3_661_000}), Options{}))
	want := []Interval{{From: time.Hour, To: time.Hour + 61*time.Second, Requests: 2, InputTokens: 2 * late.Stats.Input.Sum / 2}}
	if diff := gocmp.Diff(want, late.Intervals); diff != "" {
		t.Errorf("a late first row: %s", diff)
	}
	if got := late.Intervals[0].PerMinute(); math.Abs(got-2/(61./60)) > 1e-12 {
		t.Errorf("got %v requests/minute", got)
	}
}

func TestSessionsOfAnAnalysis(t *testing.T) {
	a := analyze(t, open(t, `{"timestamp":0,"input_length":1,"session_id":"a"}
{"timestamp":1000,"input_length":1,"session_id":"b"}
{"timestamp":4000,"input_length":1,"session_id":"a"}
{"delay":2500,"input_length":1,"session_id":"a"}
{"timestamp":9000,"input_length":1,"session_id":"b"}
{"timestamp":9000,"input_length":1}`, Options{}))
	for _, c := range []struct {
		name      string
		got, want Summary
	}{
		{"turns", a.Turns.summary(), summarize([]int{3, 2})},
		{"due to due", a.TurnGaps, summarize([]float64{4, 8})},
		{"delays", a.Delays, summarize([]float64{2.5})},
	} {
		if diff := gocmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

func TestAnalyzeStops(t *testing.T) {
	f := open(t, fiveRows, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Analyze(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	if _, err := f.Analyze(t.Context(), []int{5, 0}); err == nil || !strings.Contains(err.Error(), "got 0") {
		t.Errorf("got %v, want an error that names 0", err)
	}
	full := errors.New("disk full")
	a := analyze(t, f)
	if err := errors.Join(a.WriteTable(failing{full})); !errors.Is(err, full) {
		t.Errorf("got %v, want %v", err, full)
	}
}

func TestAnalysisTables(t *testing.T) {
	mixed, err := os.ReadFile("testdata/mixed.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, content string }{
		{"five", fiveRows},
		{"mixed", string(mixed)},
		{"untimed", `{"text_input":"x"}`},
	} {
		f, err := Open(t.Context(), "-", Options{Stdin: strings.NewReader(c.content)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		f.Stats.Path = c.name + ".jsonl"
		a := analyze(t, f)
		var table, document bytes.Buffer
		if err := errors.Join(a.WriteTable(&table), a.WriteJSON(&document)); err != nil {
			t.Fatal(err)
		}
		for file, got := range map[string]string{c.name + "_analysis.txt": table.String(), c.name + "_analysis.json": document.String()} {
			file = "testdata/" + file
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := gocmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s: %s", file, diff)
			}
		}
	}
}

func BenchmarkAnalyze(b *testing.B) {
	f, err := Open(b.Context(), realTrace(b, "mooncake_conversation.jsonl"), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := f.Analyze(b.Context(), nil); err != nil {
			b.Fatal(err)
		}
	}
}
