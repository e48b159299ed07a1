package report

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"replayd/internal/measure"
	"replayd/internal/result"
)

// The table of AIPerf's document: concurrency, total tokens/s, tokens/s per user, TTFT.
var documented = []ParetoPoint{
	{Name: "c10", Concurrency: 10, Total: 3045, PerUser: 364.69, TTFT: 250, GPUs: 8},
	{Name: "c50", Concurrency: 50, Total: 12890, PerUser: 326.10, TTFT: 270, GPUs: 8},
	{Name: "c100", Concurrency: 100, Total: 22521, PerUser: 285.03, TTFT: 347, GPUs: 8},
	{Name: "c200", Concurrency: 200, Total: 35999, PerUser: 238.67, TTFT: 420, GPUs: 8},
	{Name: "c500", Concurrency: 500, Total: 29836, PerUser: 128.85, TTFT: 1129, GPUs: 8},
}

func TestKnee(t *testing.T) {
	f := func(name string, points []ParetoPoint, want int, text string) {
		t.Helper()
		at, got := Knee(points)
		if at != want || !strings.Contains(got, text) || (text == "") != (got == "") {
			t.Errorf("%s: %d, %q, want %d and %q", name, at, got, want, text)
		}
	}
	f("the document's", documented, 3, "the knee is at concurrency 200, 36k output tokens/s; at 500 they fall to 29.8k")
	back := slices.Clone(documented)
	slices.Reverse(back)
	f("in any order", back, 1, "concurrency 200")
	flat := slices.Clone(documented)
	flat[4].Total = 37000
	f("it rises no more", flat, 3, "beyond it up to 500 they do not rise by more than 2.8 %")
	f("it still rises", documented[:4], -1, "no knee up to concurrency 200")
	f("too few", documented[:2], -1, "")
	f("one concurrency", []ParetoPoint{documented[0], documented[0], documented[0]}, -1, "")
	f("none", nil, -1, "")
}

// 10 to 200 trade one for the other; 500 is worse than 200 in both.
func TestFrontier(t *testing.T) {
	var xs, ys []float64
	for _, p := range documented {
		xs, ys = append(xs, p.PerUser), append(ys, p.PerGPU())
	}
	if got, want := frontier(xs, ys), []bool{true, true, true, true, false}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := frontier([]float64{1, math.NaN(), 1}, []float64{1, 9, 1}); !slices.Equal(got, []bool{true, false, true}) {
		t.Errorf("%v: equal points beat nobody, and one that is not known is nowhere", got)
	}
}

// Without GPUs the section says what stands for them.
func TestTradeOffWithoutGPUs(t *testing.T) {
	run := whole(t)
	other := run
	other.Settings.GPUs, other.Settings.Concurrency, other.Name = 0, 16, "other"
	s := tradeOff([]lookedAt{look(run), look(other)})
	if !strings.Contains(strings.Join(s.Text, " "), "not known of all") || s.Plots[0].Y.Unit != "tokens/s" || s.Tables[0].Rows[1][3] != "n/a" {
		t.Errorf("%q, %+v, %+v", s.Text, s.Plots[0].Y, s.Tables[0].Rows)
	}
}

// One answer that was read at once has no say in what the others' users saw: it took no time, and has few tokens.
func TestPerUserIsARatioOfSums(t *testing.T) {
	run := result.Run{}
	for i := range 21 {
		run.Rows = append(run.Rows, result.Row{Phase: measure.Profiling, Outcome: measure.OK, Start: int64(i+1) * 1e9, End: int64(i+2) * 1e9, ITL: 10, Output: 101})
	}
	run.Rows[3].ITL = 0.001
	if got, want := ParetoOf(run).PerUser, 2100/(20+1e-4); math.Abs(got-want) > 1e-9 {
		t.Errorf("%v tokens/s, want %v; the mean of 1 / ITL is %v", got, want, look(run).single("output_token_throughput_per_user"))
	}
}

// An idle server that is offered 2 requests/s has any capacity: how many are needed is said only past the knee.
func TestCapacity(t *testing.T) {
	f := func(name string, points []ParetoPoint, want string) {
		t.Helper()
		if got := Capacity(points); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	points := slices.Clone(documented)
	for i := range points {
		points[i].Requests, points[i].Good = points[i].Total/500, math.NaN()
	}
	f("one run", points[:1], "")
	f("no knee", points[:4], "")
	f("past the knee", points, "servers such as this for 1000 such requests/s: 14, by the rate at the knee")
	points[2].Good, points[3].Good, points[4].Good = 45, 20, 0
	f("with bounds", points, "servers such as this for 1000 such requests/s: 14, by the rate at the knee; 23 within the bounds, by the goodput at concurrency 100")
	for i := range points {
		points[i].Good = 0
	}
	f("none good", points, "servers such as this for 1000 such requests/s: 14, by the rate at the knee; no number of them within the bounds, since no request kept them")
	text := &bytes.Buffer{}
	if err := errors.Join(WriteAIPerfTable(text, whole(t)), WriteVLLMTable(text, whole(t))); err != nil || strings.Contains(strings.ToLower(text.String()), "servers") {
		t.Errorf("want no capacity from one run, got error %v and\n%s", err, text)
	}
}
