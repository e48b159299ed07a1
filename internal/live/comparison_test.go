package live

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"replayd/internal/canary"
	"replayd/internal/metrics"
)

// compare adds pairs, one a second, to a comparison with blocks of 20 s. The candidate's TTFT is longer by a factor.
func compare(mode canary.Mode, seconds int, factor float64) metrics.Compared {
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
	return metrics.Compared{Name: "rollout", Workload: "chat", Baseline: "stable", Candidate: "canary", Options: o, Epoch: time.Unix(0, 0), Judgement: c.Judge()}
}

// A card has the level, the words and the figures of its comparison, and the page's own verdict names one that needs a look.
func TestComparisonCards(t *testing.T) {
	for _, c := range []struct {
		state metrics.Compared
		level level
		text  string
		ttft  [4]string
	}{
		{compare(canary.ModeVerdict, 5, 1), idle, "undecided: few_blocks: no block has ended yet", [4]string{}},
		{compare(canary.ModeVerdict, 800, 1.2), bad, "fail: ttft of the candidate is longer by more than 5 %", [4]string{"ttft", "× 1.237", "1.235 to 1.241", "100 %"}},
		{compare(canary.ModeWatch, 3000, 1), well, "unchanged", [4]string{"ttft", "× 1.030", "–", ""}},
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
	b := New(Options{Comparisons: func() []metrics.Compared { return []metrics.Compared{compare(canary.ModeVerdict, 800, 1.2)} }})
	b.tick(time.Unix(1000, 0), 0)
	if page := get(b, "GET", "/live", nil).Body.String(); !strings.Contains(page, "<p>rollout: fail: ttft of the candidate") {
		t.Errorf("the page without scripts has no comparison: %s", page)
	}
	if text := string(b.all()); !strings.Contains(text, `"comparisons":[{"name":"rollout","level":"bad","text":"fail: ttft`) {
		t.Errorf("the snapshot has no comparison: %s", text)
	}
}
