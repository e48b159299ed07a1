package export

import (
	"math"
	"strings"
	"testing"
	"time"

	"replayd/internal/measure"
	"replayd/internal/result"
	"replayd/test/resulttest"
)

// sent returns an ok request of 4 tokens with a start and a latency in seconds.
func sent(start, latency float64) result.Row {
	return result.Row{
		Outcome: measure.OK, Start: resulttest.Begin.UnixNano() + int64(start*1e9), End: resulttest.Begin.UnixNano() + int64((start+latency)*1e9),
		TTFT: 100, TTFAT: 120, Latency: 1e3 * latency, ITL: 20, Second: 20, Lateness: 0, Input: 10, Output: 4, Reasoning: 1,
	}
}

// A TTFT that rises over the slices is degradation. A TTFT that is high only at the start is warm-up.
func TestTrends(t *testing.T) {
	f := func(want string, ttft func(slice int) float64) {
		t.Helper()
		run := result.Run{Settings: result.Settings{Slice: time.Second}}
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

// The first 300 s of the conversation trace with a limit of 32,768 tokens, in one line.
func TestSuccessLine(t *testing.T) {
	run := result.Run{}
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
		if got := successLine(run, result.Aggregate(run.Rows, run.Settings)); got != want {
			t.Errorf("\n got %s\nwant %s", got, want)
		}
	}
	f("Success Rate: 91.06% (918 sent, 836 ok, 82 refused: 82× HTTP 400: maximum context length is 32768 tokens, you asked for 4)")
	run.Rows = run.Rows[82:]
	f("Success Rate: 100% (836 sent, 836 ok)")
	for i, text := range []string{"a", "b", "c", "d", "e", strings.Repeat("long ", 60)} {
		for range 6 - i {
			run.Rows = append(run.Rows, result.Row{Outcome: measure.Truncated, Error: text})
		}
	}
	run.Ledger = &measure.Ledger{Dropped: map[measure.DropReason]int64{measure.Missed: 1200}, Filtered: 3}
	f("Success Rate: 97.54% (857 sent, 836 ok, 21 failed, 1,200 dropped (missed), 3 filtered: 6× truncated a; 5× truncated b; 4× truncated c; 3 other reasons)")
	run = result.Run{}
	f("Success Rate: N/A (0 sent, 0 ok)")
	run.Rows = []result.Row{{Outcome: measure.Truncated, Error: strings.Repeat("long ", 60)}}
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
