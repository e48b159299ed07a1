package live

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"replayd/internal/canary"
	"replayd/internal/comparison"
)

// compare adds pairs, one a second, to a comparison with blocks of 20 s. The candidate's TTFT is longer by a factor.
func compare(mode canary.Mode, seconds int, factor float64) comparison.Status {
	o := canary.Defaults()
	o.Mode, o.MinTime = mode, 20*time.Second
	c := canary.New(o)
	for i := range seconds {
		p := canary.Pair{At: time.Unix(int64(i), 0)}
		for side, f := range []float64{1, factor * (1 + 0.01*float64(i%7))} {
			d := time.Duration(f * float64(100*time.Millisecond))
			p.Requests[side] = canary.Request{Sent: p.At, First: p.At.Add(d), End: p.At.Add(2 * d), TTFT: d, TPOT: d / 10, E2E: 2 * d}
		}
		c.Add(&p)
	}
	return comparison.Status{
		Name: "rollout", Workload: "chat", Baseline: "stable", Candidate: "canary", Options: o,
		Epoch: time.Unix(0, 0), Judgment: c.Judge(),
	}
}

// A card tells answers that differ beside the verdict.
func TestComparisonCardTellsAnswers(t *testing.T) {
	state := compare(canary.ModeVerdict, 800, 1)
	state.Judgment.Answers = canary.Answers{LengthsDiffer: true, Ratio: 0.5, Median: [2]int64{98, 50}}
	if got, want := comparedOf(&state).Text, "; answers: the candidate's are 0.50 times as long (median 50 against 98 tokens). chat goes to stable"; !strings.Contains(got, want) {
		t.Errorf("got %q, want %q in it", got, want)
	}
}

// A card tells the version that is judged, and how often the chance of an error was spent.
func TestComparisonCardTellsTheVersion(t *testing.T) {
	state := compare(canary.ModeVerdict, 800, 1)
	state.Version, state.Epochs = "7d4b9", 3
	want := "; versions judged: 3, each with at most 1 %. chat goes to stable (baseline) and canary, version " +
		`"7d4b9" (candidate): `
	if got := comparedOf(&state).Text; !strings.Contains(got, want) {
		t.Errorf("got %q, want %q in it", got, want)
	}
}

// A card has the level, the words and the figures of its comparison, and the page's own verdict names one that needs a look.
func TestComparisonCards(t *testing.T) {
	for _, c := range []struct {
		state comparison.Status
		level level
		text  string
		ttft  [4]string
	}{
		{compare(canary.ModeVerdict, 5, 1), idle, "undecided: no_data: no block has latencies yet", [4]string{}},
		{compare(canary.ModeVerdict, 800, 1.2), bad, "fail: in these 5 minutes, ttft of the candidate is longer than the baseline's by more than 5 %", [4]string{"ttft", "× 1.237", "1.235 to 1.241", "100 %"}},
		{compare(canary.ModeWatch, 3000, 1), well, "no change proven: no metric is beyond its tolerance; at most one false alarm", [4]string{"ttft", "× 1.030", "–", ""}},
		{compare(canary.ModeWatch, 3000, 1.2), bad, "changed: ttft of the candidate is slower since 1970-01-01T00:0", [4]string{"ttft", "× 1.236", "–", ""}},
	} {
		got := comparedOf(&c.state)
		if got.Level != c.level || !strings.HasPrefix(got.Text, c.text) || !strings.Contains(got.Text, ". chat goes to stable (baseline) and canary (candidate): ") {
			t.Errorf("want %v, %q, got %+v", c.level, c.text, got)
		}
		if c.ttft[0] == "" {
			continue
		}
		row := got.Rows[0]
		if c.ttft[3] == "" {
			row[3] = ""
		}
		if d := cmp.Diff(c.ttft, row); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.text, d)
		}
		top := verdictOf(nil, nil, []compared{got})
		if named := strings.HasPrefix(top.Text, "comparison rollout: "); named != (c.level == bad) {
			t.Errorf("%s: the page says %q", c.text, top.Text)
		}
	}
}

// The page has the comparisons at each tick.
func TestComparisonsOnThePage(t *testing.T) {
	b := New(Options{Comparisons: func() []comparison.Status { return []comparison.Status{compare(canary.ModeVerdict, 800, 1.2)} }})
	b.tick(time.Unix(1000, 0), 0)
	if page := get(b, "GET", "/live", nil).Body.String(); !strings.Contains(page, "<p>rollout: fail: in these 5 minutes, ttft of the candidate") {
		t.Errorf("the page without scripts has no comparison: %s", page)
	}
	if text := string(b.all()); !strings.Contains(text, `"comparisons":[{"name":"rollout","level":"bad","text":"fail: in these 5 minutes, ttft`) {
		t.Errorf("the snapshot has no comparison: %s", text)
	}
}
