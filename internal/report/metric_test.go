package report

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"replayd/internal/measure"
)

// sent is an ok request of 4 tokens by its start and latency in seconds.
func sent(start, latency float64) Row {
	return Row{
		Outcome: measure.OK, Start: begin.UnixNano() + int64(start*1e9), End: begin.UnixNano() + int64((start+latency)*1e9),
		TTFT: 100, Latency: 1e3 * latency, ITL: 20, Second: 20, Lateness: 0, Input: 10, Output: 4, Reasoning: 1,
	}
}

// AIPerf's span goes from the first start to the last end of ok requests, vLLM's over all that were sent.
func TestSpans(t *testing.T) {
	early, late, warm := sent(-5, 1), sent(1, 30), sent(-60, 1)
	early.Outcome, late.Outcome, warm.Phase = measure.HTTP5xx, measure.Cancelled, measure.Warmup
	never := Row{Outcome: measure.ConnectFailed, End: begin.UnixNano(), Lateness: math.NaN()}
	rows := []Row{warm, early, never, sent(0, 4), sent(2, 6), late}
	f := Aggregate(rows, Settings{GPUs: 2, Goodput: []Bound{{"request_latency", 4000}}})
	if f.OK != 2 || f.Failed != 2 || f.Cancelled != 1 {
		t.Errorf("%d ok, %d failed, %d cancelled", f.OK, f.Failed, f.Cancelled)
	}
	if got := time.Duration(f.End - f.Start); got != 8*time.Second {
		t.Errorf("AIPerf's span %v, want 8 s", got)
	}
	if got := time.Duration(f.Last - f.First); got != 36*time.Second {
		t.Errorf("vLLM's span %v, want 36 s", got)
	}
	want := map[string]float64{
		"request_count": 2, "error_request_count": 2, "cancelled_request_count": 1, "benchmark_duration": 8,
		"request_throughput": 0.25, "output_token_throughput": 1, "output_token_throughput_per_gpu": 0.5, "total_token_throughput": 3.5,
		"total_isl": 20, "total_osl": 8, "total_output_tokens": 6, "goodput": 0.125, "good_request_count": 1, "good_request_fraction": 0.25,
		"time_to_first_token": 100, "time_to_second_token": 20, "request_latency": 5000, "inter_token_latency": 20,
		"output_token_throughput_per_user": 50, "output_sequence_length": 4, "input_sequence_length": 10, "output_token_count": 3,
		"reasoning_token_count": 1, "lateness": 0,
	}
	got := map[string]float64{}
	for _, m := range f.Metrics {
		got[m.Tag] = m.Avg()
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if m, _ := f.Metric("lateness"); m.Of.N() != 4 {
		t.Errorf("%d values of lateness, want those of all 4 that were sent", m.Of.N())
	}
}

func TestSlices(t *testing.T) {
	run := Run{Settings: Settings{Slice: 10 * time.Second}, Rows: []Row{sent(0, 1), sent(9.9, 30), sent(10, 1), sent(41, 1)}}
	got := [][4]int64{}
	for _, s := range run.Slices() {
		complete := int64(0)
		if s.Complete {
			complete = 1
		}
		got = append(got, [4]int64{int64(s.Index), (s.Start - begin.UnixNano()) / 1e9, int64(s.Figures.OK), complete})
		if s.End-s.Start != int64(10*time.Second) {
			t.Errorf("slice %d is %v long", s.Index, time.Duration(s.End-s.Start))
		}
	}
	// Nothing was sent from 20 s to 40 s; the slice from 40 s was cut short by the end of the run.
	want := [][4]int64{{0, 0, 2, 1}, {1, 10, 1, 1}, {4, 40, 1, 0}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if (Run{Rows: run.Rows}).Slices() != nil || (Run{Settings: run.Settings}).Slices() != nil {
		t.Error("slices of nothing")
	}
}

// A time to the first token that rises over the slices is degradation; one that only begins high is a warm-up and no degradation.
func TestTrends(t *testing.T) {
	f := func(want string, ttft func(slice int) float64) {
		t.Helper()
		run := Run{Settings: Settings{Slice: time.Second}}
		for i := range 100 {
			r := sent(float64(i)/10, 1)
			r.TTFT = ttft(i/10) + float64(i*7%10)
			run.Rows = append(run.Rows, r)
		}
		trend, ok := NewTrend(run.Slices())
		if !ok {
			t.Fatal("no trend")
		}
		found := []string{}
		for _, line := range trend.Lines() {
			if at := strings.IndexAny(line, "(:"); strings.Contains(line, "etect") || strings.Contains(line, "egradation") {
				found = append(found, strings.TrimSpace(line[:at]))
			}
		}
		if got := strings.Join(found, "; "); got != want {
			t.Errorf("got %s\nwant %s\n%s", got, want, strings.Join(trend.Lines(), "\n"))
		}
	}
	f("No warm-up detected; Degradation detected", func(slice int) float64 { return 100 + 20*float64(slice) })
	f("Warm-up detected; No degradation", func(slice int) float64 { return 300 - 20*float64(slice) })
	f("Warm-up detected; No degradation detected", func(slice int) float64 { return 100 + 200*float64(max(0, 1-slice)) + float64(slice*3%5) })
	f("No warm-up detected; No degradation detected", func(slice int) float64 { return 100 + float64(slice*3%5) })
	if _, ok := NewTrend(nil); ok {
		t.Error("a trend of nothing")
	}
}

// The first 300 s of the conversation trace against a limit of 32,768 tokens, in one line.
func TestSuccessLine(t *testing.T) {
	run := Run{}
	for i := range 918 {
		r := sent(float64(i), 1)
		if i < 82 {
			r.Outcome, r.Status = measure.HTTP4xx, 400
			r.Error = "HTTP 400: maximum context length is 32768 tokens,\nyou asked for " + strings.Repeat("4", 1+i%5)
		}
		run.Rows = append(run.Rows, r)
	}
	f := func(want string) {
		t.Helper()
		if got := successLine(run, Aggregate(run.Rows, run.Settings)); got != want {
			t.Errorf("\n got %s\nwant %s", got, want)
		}
	}
	f("Success Rate: 91.06% (918 sent, 836 ok, 82 refused: 82× HTTP 400: maximum context length is 32768 tokens, you asked for 4)")
	run.Rows = run.Rows[82:]
	f("Success Rate: 100% (836 sent, 836 ok)")
	for i, text := range []string{"a", "b", "c", "d", "e", strings.Repeat("long ", 60)} {
		for range 6 - i {
			run.Rows = append(run.Rows, Row{Outcome: measure.Truncated, Error: text})
		}
	}
	run.Dropped = map[measure.DropReason]int64{measure.Missed: 1200, measure.Filtered: 3}
	f("Success Rate: 97.54% (857 sent, 836 ok, 21 failed, 1,200 dropped (missed), 3 filtered: 6× truncated a; 5× truncated b; 4× truncated c; 3 other reasons)")
	run = Run{}
	f("Success Rate: N/A (0 sent, 0 ok)")
	run.Rows = []Row{{Outcome: measure.Truncated, Error: strings.Repeat("long ", 60)}}
	f("Success Rate: 0.00% (1 sent, 0 ok, 1 failed: 1× truncated " + strings.Repeat("long ", 32) + "…)")
}

func TestGrouped(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0.00", 999.994: "999.99", 999.995: "1,000.00", 22521.42: "22,521.42", -1234567.891: "-1,234,567.89", math.Inf(1): "N/A",
	} {
		if got := grouped(v); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
}
