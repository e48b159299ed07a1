package terminal

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/canary"
)

// underWay is a comparison whose candidate has a slow prefill, after some blocks.
func underWay() *canary.Judgment {
	j := &canary.Judgment{
		Verdict: canary.Undecided, Reason: canary.FewBlocks, Pairs: canary.Pairs{Judged: 1234, Void: 3}, More: 5, BlockTime: 2400 * time.Millisecond,
	}
	for _, m := range canary.Metrics {
		j.Metrics[m] = canary.MetricState{Metric: m, Ratio: math.NaN(), Correlation: math.NaN()}
	}
	set := func(m canary.MetricState) { j.Metrics[m.Metric] = m }
	set(canary.MetricState{Metric: canary.TTFT, Blocks: 10, Worse: 9, Better: 1, WorseLog10: 1.5, NotWorseLog10: -0.9, Ratio: 1.1478, Lower: 1.021, Upper: math.Inf(1)})
	set(canary.MetricState{Metric: canary.E2E, Blocks: 10, Worse: 1, Better: 9, WorseLog10: -1, NotWorseLog10: 1.99999, Ratio: 1.0023, Lower: 0, Upper: 1.0812})
	set(canary.MetricState{Metric: canary.Queued, Blocks: 12, Worse: 8, Better: 2, Ties: 2, WorseLog10: 1.38908, Excess: 0.0712, Ratio: math.NaN()})
	set(canary.MetricState{Metric: canary.Bad, Blocks: 12, Ties: 12, Ratio: math.NaN()})
	return j
}

// The table on a terminal, and the one at the end, at several widths.
func TestComparingGolden(t *testing.T) {
	const path = "testdata/comparing.golden"
	var b strings.Builder
	o := canary.Defaults()
	o.MinTime = 2 * time.Second
	none := &canary.Judgment{Verdict: canary.Undecided, Reason: canary.FewBlocks, Pairs: canary.Pairs{Judged: 12}}
	failed := underWay()
	failed.Verdict, failed.Reason, failed.Metric, failed.More = canary.Fail, "", canary.TTFT, 0
	failed.Unread[canary.Candidate] = true
	for _, columns := range []int{40, 80, 120} {
		for _, j := range []*canary.Judgment{none, underWay()} {
			synctest.Test(t, func(t *testing.T) {
				s, y := terminal(t, columns)
				c := NewComparing(s, nil, o, 2*time.Minute)
				wait(31 * time.Second)
				c.Judged(j)
				fmt.Fprintf(&b, "--- %d columns, under way\n%s", columns, y)
				c.End()
				if got := strings.TrimSpace(y.String()); got != "" {
					t.Errorf("want it gone at the end, got %q", got)
				}
			})
		}
		fmt.Fprintf(&b, "--- %d columns, at the end\n%s", columns, Comparison(failed, o, columns))
	}
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("got\n%s\nwant\n%s", &b, want)
	}
}

// The log gets a line every 30 seconds, however often the state comes.
func TestComparingLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		c := NewComparing(nil, bare(&b), canary.Defaults(), time.Hour)
		for range 95 {
			wait(time.Second)
			c.Judged(underWay())
		}
		c.End()
		const line = `msg=comparing pairs=1234 void=3 undecided="few_blocks: about 5 more blocks like these decide, which take 12s"` + "\n"
		if want := strings.Repeat(line, 3); b.String() != want {
			t.Errorf("got\n%s\nwant\n%s", &b, want)
		}
	})
}

// On a low terminal the last lines are left out: the cursor could not return over them.
func TestScreenHeight(t *testing.T) {
	s, y := terminal(t, 20)
	s.height = func() int { return 2 }
	s.Draw("1", "2", "3")
	s.Draw("one", "two", "three")
	if want := "one\ntwo\n"; y.String() != want || y.row != 0 {
		t.Errorf("got %q with the cursor in line %d, want %q and 0", y, y.row, want)
	}
}
