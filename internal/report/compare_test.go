package report

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"replayd/internal/measure"
	"replayd/internal/result"
	"replayd/test/resulttest"
)

// noisy returns a run of n requests, one a second. A larger slow means a slower engine.
func noisy(name string, seed uint64, n int, slow float64) result.Run {
	random := rand.New(rand.NewPCG(seed, 1))
	run := result.Run{Name: name}
	for i := range n {
		ttft, itl := slow*(150+100*random.Float64()), slow*(18+4*random.Float64())
		latency := ttft + 49*itl
		start := resulttest.Begin.UnixNano() + int64(i)*1e9
		run.Rows = append(run.Rows, result.Row{
			Outcome: measure.OK, Start: start, End: start + int64(latency*1e6), TTFT: ttft, ITL: itl, Latency: latency, Input: 10, Output: 50,
		})
	}
	return run
}

// verdicts returns the verdicts of a page by figure, and the sentence at the top.
func verdicts(t *testing.T, runs ...result.Run) (by map[string]string, lead, text string) {
	t.Helper()
	p := HTML(runs)
	for _, s := range p.Sections {
		if s.Short == "Differences" {
			by = map[string]string{}
			for _, row := range s.Tables[0].Rows {
				by[row[0]] = row[len(row)-1]
			}
			return by, p.Lead, strings.Join(s.Text, "\n")
		}
	}
	t.Fatal("want a section of differences")
	return nil, "", ""
}

func TestVerdicts(t *testing.T) {
	by, lead, text := verdicts(t, noisy("a", 1, 300, 1), noisy("b", 2, 300, 1))
	for figure, verdict := range by {
		want := "no difference shown"
		if strings.HasSuffix(figure, "p99") { // only 3 of 300 requests are above p99
			want = "too short to judge"
		}
		if verdict != want {
			t.Errorf("equal runs: %s: %s, want %s", figure, verdict, want)
		}
	}
	if want := "b against a: no difference is shown in output, TTFT, ITL, latency or failures."; lead != want {
		t.Errorf("got %q, want %q", lead, want)
	}
	for _, want := range []string{"a: 30 blocks of 10 s each", "b: 30 blocks of 10 s each", "One family: 15 figures on this page", "says nothing about how runs of one kind vary"} {
		if !strings.Contains(text, want) {
			t.Errorf("want %q in\n%s", want, text)
		}
	}

	by, lead, _ = verdicts(t, noisy("a", 1, 300, 1), noisy("b", 2, 300, 1.1))
	for figure, want := range map[string]string{"TTFT mean": "worse", "ITL p50": "worse", "Output per user": "worse", "Latency p50": "worse", "Requests, ok": "no difference shown", "Failed": "no difference shown"} {
		if by[figure] != want {
			t.Errorf("10 %% slower: %s: %s, want %s", figure, by[figure], want)
		}
	}
	if !strings.HasPrefix(lead, "b against a: ") || !strings.Contains(lead, "ITL p50 +") || strings.Contains(lead, "Output") {
		t.Errorf("10 %% slower: %q", lead)
	}

	// 10 requests of 1.2 s, one a second, last about 9 mean latencies.
	by, lead, text = verdicts(t, noisy("a", 1, 10, 1), noisy("b", 2, 10, 3))
	for figure, verdict := range by {
		if verdict != "too short to judge" {
			t.Errorf("short runs: %s: %s", figure, verdict)
		}
	}
	if !strings.HasPrefix(lead, "b against a: too short to judge. a: lasted 10.2 s, less than 12 mean latencies (") || !strings.Contains(text, "a: lasted 10.2 s") {
		t.Errorf("short runs: %q\n%s", lead, text)
	}
}

// A failure rate of 4 % differs significantly from none, and the unit of the share is percent.
func TestFailuresAreJudged(t *testing.T) {
	a, b := noisy("a", 1, 600, 1), noisy("b", 2, 600, 1)
	for i := range b.Rows {
		if i%25 == 7 {
			b.Rows[i].Outcome = measure.HTTP5xx
		}
	}
	by, lead, _ := verdicts(t, a, b)
	if by["Failed"] != "worse" || !strings.HasSuffix(lead, "Failed +4 points.") {
		t.Errorf("%s; %q", by["Failed"], lead)
	}
}

// A run without any connection has no length. Its length does not count from 1970.
func TestNothingWasWritten(t *testing.T) {
	a, b := noisy("a", 1, 20, 1), noisy("b", 2, 20, 1)
	for _, run := range []result.Run{a, b} {
		for i := range run.Rows {
			run.Rows[i] = result.Row{Outcome: measure.ConnectFailed, End: run.Rows[i].End, Lateness: math.NaN()}
		}
	}
	if l := newRunData(a); l.seconds != 0 {
		t.Errorf("it lasted %v s, want 0", l.seconds)
	}
	if _, _, text := verdicts(t, a, b); !strings.Contains(text, "a: no request ended ok") || !strings.Contains(text, "One family: 1 figure on") {
		t.Error(text)
	}
}
