package result

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"replayd/internal/measure"
)

// sent returns an ok request of 4 tokens. start and latency are in seconds.
func sent(start, latency float64) Row {
	return Row{
		Outcome: measure.OK, Start: begin.UnixNano() + int64(start*1e9), End: begin.UnixNano() + int64((start+latency)*1e9),
		TTFT: 100, TTFAT: 120, Latency: 1e3 * latency, ITL: 20, Second: 20, Lateness: 0, Input: 10, Output: 4, Reasoning: 1,
	}
}

// AIPerf's span is from the first start to the last end of ok requests, vLLM's is over all requests that were sent.
func TestSpans(t *testing.T) {
	early, late, warm := sent(-5, 1), sent(1, 30), sent(-60, 1)
	early.Outcome, late.Outcome, warm.Phase = measure.HTTP5xx, measure.Cancelled, measure.Warmup
	never := Row{Outcome: measure.ConnectFailed, End: begin.UnixNano(), Lateness: math.NaN()}
	rows := []Row{warm, early, never, sent(0, 4), sent(2, 6), late}
	f := Aggregate(rows, Settings{GPUs: 2, SLO: measure.SLO{{Quantity: measure.E2E, Limit: 4000}}})
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
		"time_to_first_token": 100, "time_to_first_output_token": 120, "time_to_second_token": 20, "request_latency": 5000, "inter_token_latency": 20,
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
