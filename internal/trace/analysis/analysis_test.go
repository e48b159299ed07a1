package analysis

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"replayd/internal/stats"
	"replayd/internal/trace"

	"github.com/google/go-cmp/cmp"
)

const fiveRows = `{"timestamp":0,"input_length":1024,"output_length":20,"hash_ids":[1,2]}
{"timestamp":1000,"input_length":1536,"output_length":30,"hash_ids":[1,2,3]}
{"timestamp":2000,"input_length":1024,"output_length":25,"hash_ids":[1,2]}
{"timestamp":3000,"input_length":1536,"output_length":40,"hash_ids":[2,3,4]}
{"timestamp":4000,"input_length":1024,"output_length":22,"hash_ids":[1,3]}
`

func analyze(t testing.TB, f *trace.File, caches ...int) Analysis {
	t.Helper()
	a, err := Analyze(t.Context(), f, caches)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// summarize computes a Summary with numpy's definitions.
func summarize[T int | float64](values []T) stats.Summary {
	if len(values) == 0 {
		return stats.Summary{}
	}
	sorted := slices.Sorted(slices.Values(values))
	at := func(percent float64) float64 {
		rank := float64(len(sorted)-1) * percent / 100
		low := int(rank)
		high := min(low+1, len(sorted)-1)
		return float64(sorted[low]) + (rank-float64(low))*float64(sorted[high]-sorted[low])
	}
	s := stats.Summary{
		Count: int64(len(sorted)), Min: float64(sorted[0]), Max: float64(sorted[len(sorted)-1]),
		P25: at(25), P50: at(50), P75: at(75), P90: at(90), P99: at(99),
	}
	for _, v := range sorted {
		s.Mean += float64(v)
	}
	if _, whole := any(sorted).([]int); whole {
		s.Sum = int64(s.Mean)
	}
	s.Mean /= float64(len(sorted))
	for _, v := range sorted {
		s.StdDev += (float64(v) - s.Mean) * (float64(v) - s.Mean)
	}
	s.StdDev = math.Sqrt(s.StdDev / float64(len(sorted)))
	return s
}

// AIPerf's figures for the five rows, by its definitions. Row 4 begins with another root and shares only id 3 at its
// second position.
func TestAIPerfOfFiveRows(t *testing.T) {
	a := analyze(t, openFile(t, fiveRows, trace.Options{}))
	want := []stats.Summary{
		summarize([]int{1024, 1536, 1024, 1536, 1024}), summarize([]int{1024, 1024, 1024, 512, 1024}),
		summarize([]int{0, 512, 0, 1024, 0}), summarize([]int{20, 30, 25, 40, 22}),
		summarize([]float64{0, 2. / 3, 1, 2. / 3, 1}),
	}
	got := []stats.Summary{a.Stats.Input, a.Context, a.UniquePrompt, a.Stats.Output, a.HitRate}
	if diff := cmp.Diff(want, got, approximately(1e-12)); diff != "" {
		t.Error(diff)
	}
}

// A script that reads AIPerf's analysis.json finds every field of its AnalysisStats and MetricStats.
func TestJSONHasAIPerfsNames(t *testing.T) {
	decode := func(content string) map[string]any {
		var b bytes.Buffer
		if err := analyze(t, openFile(t, content, trace.Options{})).WriteJSON(&b); err != nil {
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

func TestIntervals(t *testing.T) {
	for _, c := range []struct {
		last  time.Duration
		width time.Duration
		count int
	}{
		{0, 5 * time.Minute, 1},
		{5*time.Minute - millisecond, 5 * time.Minute, 1},
		{5 * time.Minute, 5 * time.Minute, 2},
		{24*time.Hour - millisecond, 5 * time.Minute, 288},
		{24 * time.Hour, 10 * time.Minute, 145},
		{365 * 24 * time.Hour, 2560 * time.Minute, 206},
	} {
		a := analyze(t, openFile(t, rowsAt(0, int(c.last/millisecond)), trace.Options{}))
		if a.Interval != c.width || len(a.Intervals) != c.count {
			t.Errorf("until %v: %d intervals of %v, want %d of %v", c.last, len(a.Intervals), a.Interval, c.count, c.width)
		}
	}
	late := analyze(t, openFile(t, rowsAt(3_601_000, 3_661_000), trace.Options{}))
	want := []Interval{{From: time.Hour, To: time.Hour + 61*time.Second, Requests: 2, InputTokens: late.Stats.Input.Sum}}
	if diff := cmp.Diff(want, late.Intervals); diff != "" {
		t.Errorf("a late first row: %s", diff)
	}
	if got := late.Intervals[0].PerMinute(); math.Abs(got-2/(61./60)) > 1e-12 {
		t.Errorf("got %v requests/minute", got)
	}
}

func TestSessionsOfAnAnalysis(t *testing.T) {
	a := analyze(t, openFile(t, `{"timestamp":0,"input_length":1,"session_id":"a"}
{"timestamp":1000,"input_length":1,"session_id":"b"}
{"timestamp":4000,"input_length":1,"session_id":"a"}
{"delay":2500,"input_length":1,"session_id":"a"}
{"timestamp":9000,"input_length":1,"session_id":"b"}
{"timestamp":9000,"input_length":1}`, trace.Options{}))
	for _, c := range []struct {
		name      string
		got, want stats.Summary
	}{
		{"turns", a.Turns, summarize([]int{3, 2})},
		{"due to due", a.TurnGaps, summarize([]float64{4, 8})},
		{"delays", a.Delays, summarize([]float64{2.5})},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

func TestAnalyzeStops(t *testing.T) {
	f := openFile(t, fiveRows, trace.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Analyze(ctx, f, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	if _, err := Analyze(t.Context(), f, []int{5, 0}); err == nil || !strings.Contains(err.Error(), "got 0") {
		t.Errorf("got %v, want an error that names 0", err)
	}
	full := errors.New("disk full")
	a := analyze(t, f)
	if err := a.WriteTable(failingWriter{full}, 0); !errors.Is(err, full) {
		t.Errorf("table: got %v, want %v", err, full)
	}
	if err := a.WriteJSON(failingWriter{full}); !errors.Is(err, full) {
		t.Errorf("JSON: got %v, want %v", err, full)
	}
}

func TestAnalysisTables(t *testing.T) {
	mixed, err := os.ReadFile("../testdata/mixed.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, content string }{
		{"five", fiveRows},
		{"mixed", string(mixed)},
		{"untimed", `{"text_input":"x"}`},
	} {
		f, err := trace.Open(t.Context(), "-", trace.Options{Stdin: strings.NewReader(c.content)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		f.Stats.Path = c.name + ".jsonl"
		a := analyze(t, f)
		var table, document bytes.Buffer
		if err := errors.Join(a.WriteTable(&table, 0), a.WriteJSON(&document)); err != nil {
			t.Fatal(err)
		}
		for file, got := range map[string]string{c.name + ".txt": table.String(), c.name + ".json": document.String()} {
			file = "testdata/" + file
			if *updateGolden {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s: %s", file, diff)
			}
		}
	}
}

func BenchmarkAnalyze(b *testing.B) {
	f, err := trace.Open(b.Context(), publicTrace(b, "mooncake_conversation.jsonl"), trace.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Analyze(b.Context(), f, nil); err != nil {
			b.Fatal(err)
		}
	}
}
