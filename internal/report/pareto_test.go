package report

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"replayd/internal/export"
	"replayd/internal/measure"
	"replayd/internal/result"
	"replayd/internal/stats"
	"replayd/test/resulttest"
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
	f("it rises no more", flat, 3, "up to concurrency 500 they rise by at most 2.8 %")
	f("it still rises", documented[:4], -1, "no knee up to concurrency 200")
	f("too few", documented[:2], -1, "")
	f("one concurrency", []ParetoPoint{documented[0], documented[0], documented[0]}, -1, "")
	f("none", nil, -1, "")
	short := slices.Clone(documented)
	short[1].short = true
	f("one too short", short, -1, "whether there is a knee cannot be told: the run at concurrency 50 is too short to judge")
	short[0].short, short[4].short = true, true
	f("too short", short, -1, "the runs at concurrency 10, 50 and 500 are too short to judge")
}

// A sweep whose runs are too short is told as such: no knee, and no point that is called better or worse.
func TestShortRunsAreNotJudged(t *testing.T) {
	var runs []result.Run
	for i, seconds := range []float64{1, 0.9, 2} { // of the same answers: the last run is the worst in both directions
		run := result.Run{Settings: result.Settings{Concurrency: i + 1}}
		for n := range 3 {
			start := 1e9 + int64(float64(n)*seconds*1e9)
			run.Rows = append(run.Rows, result.Row{
				Phase: measure.Profiling, Outcome: measure.OK, Start: start, End: start + int64(seconds*1e9),
				Output: 10, ITL: 100 * seconds,
			})
		}
		runs = append(runs, run)
	}
	p := HTML(runs)
	if want := "Whether there is a knee cannot be told: the runs at concurrency 1, 2 and 3 are too short to judge."; p.Lead != want {
		t.Errorf("got the headline %q, want %q", p.Lead, want)
	}
	points := []ParetoPoint{ParetoOf(runs[0]), ParetoOf(runs[1]), ParetoOf(runs[2])}
	s := tradeOff(points)
	drawn := s.Plots[0].Series
	if len(drawn) != 1 || drawn[0].Name != "too short to judge" || len(drawn[0].X) != 3 {
		t.Errorf("want all points among those too short to judge, got %+v", drawn)
	}
}

// 10 to 200 trade one rate for the other. 500 is worse than 200 in both by more than the intervals.
func TestFrontier(t *testing.T) {
	f := func(name string, wide float64, want ...bool) {
		t.Helper()
		points := slices.Clone(documented)
		for i, p := range points {
			points[i].user = stats.Interval{Value: p.PerUser, Low: p.PerUser * (1 - wide), High: p.PerUser * (1 + wide)}
			points[i].output = stats.Interval{Value: p.Total, Low: p.Total * (1 - wide), High: p.Total * (1 + wide)}
		}
		points = append(points, points[0], ParetoPoint{user: stats.Interval{Value: math.NaN()}})
		if got := frontier(points); !slices.Equal(got, append(want, true, false)) { // equal points beat nobody
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	f("exact", 0, true, true, true, true, false)
	f("apart", 0.09, true, true, true, true, false)
	f("one direction overlaps", 0.1, true, true, true, true, true)
	f("without intervals", math.Inf(1), true, true, true, true, true)
}

// The run with gaps of 9.7 ms is dominated, although the ITL of some coalesced reads is near 0.
func TestMergedReadsMakeNoFrontier(t *testing.T) {
	var all []ParetoPoint
	for i, gap := range []float64{8.2, 8.5, 9.7} {
		run := result.Run{Settings: result.Settings{Concurrency: i + 1}}
		random, at := rand.New(rand.NewPCG(1, 2)), 1e9
		for n := range 600 {
			at += 1e7 * gap * (0.8 + 0.4*random.Float64())
			run.Rows = append(run.Rows, result.Row{
				Phase: measure.Profiling, Outcome: measure.OK, Start: int64(at), End: int64(at) + 90e6, ITL: gap + random.Float64() - 0.5, Output: 10,
			})
			if gap == 9.7 && n%50 == 0 {
				run.Rows[n].ITL = 0.001
			}
		}
		all = append(all, ParetoOf(run))
	}
	s := tradeOff(all)
	on, off := s.Plots[0].Series[1], s.Plots[0].Series[2]
	if !slices.Equal(on.Text, []string{"c=1"}) && !slices.Equal(on.Text, []string{"c=1 (knee)"}) || !slices.Equal(off.Text, []string{"c=2", "c=3"}) {
		t.Errorf("on the frontier %v, dominated %v", on.Text, off.Text)
	}
}

// Without GPU counts the section says that total output stands for output per GPU.
func TestTradeOffWithoutGPUs(t *testing.T) {
	run := resulttest.Run(t)
	other := run
	other.Settings.GPUs, other.Settings.Concurrency, other.Name = 0, 16, "other"
	s := tradeOff([]ParetoPoint{ParetoOf(run), ParetoOf(other)})
	if !strings.Contains(strings.Join(s.Text, " "), "is not known for every run") || s.Plots[0].Y.Unit != "tokens/s" || s.Tables[0].Rows[1][3] != "–" {
		t.Errorf("%q, %+v, %+v", s.Text, s.Plots[0].Y, s.Tables[0].Rows)
	}
}

// An answer that came in one read does not distort output per user: it took no time and has few tokens.
func TestPerUserIsARatioOfSums(t *testing.T) {
	run := result.Run{}
	for i := range 21 {
		run.Rows = append(run.Rows, result.Row{Phase: measure.Profiling, Outcome: measure.OK, Start: int64(i+1) * 1e9, End: int64(i+2) * 1e9, ITL: 10, Output: 101})
	}
	run.Rows[3].ITL = 0.001
	if got, want := ParetoOf(run).PerUser, 2100/(20+1e-4); math.Abs(got-want) > 1e-9 {
		t.Errorf("%v tokens/s, want %v; the mean of 1 / ITL is %v", got, want,
			newRunData(run).single("output_token_throughput_per_user"))
	}
}

// An idle server at 2 requests/s could have any capacity, so the number of servers is given only past the knee.
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
	f("past the knee", points, "1,000 requests/s of this kind need 14 servers at the rate of the knee")
	points[2].Good, points[3].Good, points[4].Good = 45, 20, 0
	f("with bounds", points, "1,000 requests/s of this kind need 14 servers at the rate of the knee; 23 within the SLO, at the goodput of concurrency 100")
	for i := range points {
		points[i].Good = 0
	}
	f("none good", points, "1,000 requests/s of this kind need 14 servers at the rate of the knee; no number of servers meets the SLO, since no request met it")
	text := &bytes.Buffer{}
	if err := errors.Join(export.WriteAIPerfTable(text, resulttest.Run(t), 0), export.WriteVLLMTable(text, resulttest.Run(t))); err != nil || strings.Contains(strings.ToLower(text.String()), "servers") {
		t.Errorf("want no capacity from one run, got error %v and\n%s", err, text)
	}
}
