//go:build live

package live

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"replayd/internal/canary"
	"replayd/internal/report"
)

// comparedPage returns the page of a comparison of some pairs, one a second. The candidate's times are as many times as long, and one of 30 of its
// requests fails.
func comparedPage(pairs int, slower float64) report.Page {
	random := rand.New(rand.NewPCG(1, 2))
	c := report.Canary{
		Options: canary.Defaults(), History: &canary.History{}, Workloads: [2]string{"compare", "compare@candidate"},
		Settings: []report.Fact{{Name: "trace", Text: "traces/conversation.jsonl"}, {Name: "baseline", Text: "http://vllm-0-24-0.inference.svc.cluster.local:8000"}},
	}
	comparison := canary.New(c.Options)
	comparison.Ended = c.History.Block
	for i := range pairs {
		at := time.Unix(int64(1_800_000_000+i), 0)
		p := &canary.Pair{ID: fmt.Sprintf("%d/%d", i/600, i%600), At: at}
		for side, factor := range []float64{1, slower} {
			times := func(d float64) time.Duration { return time.Duration(d * factor * math.Exp(0.1*random.NormFloat64())) }
			ttft, tpot := times(2e8), times(1e7)
			p.Requests[side] = canary.Request{Sent: at, First: at.Add(ttft), End: at.Add(ttft + 30*tpot), TTFT: ttft, TPOT: tpot, E2E: ttft + 30*tpot}
		}
		if i%30 == 0 {
			p.Requests[canary.Candidate] = canary.Request{Sent: at, End: at.Add(time.Second), Bad: true, Why: "timeout_first_token"}
		}
		comparison.Add(p)
		c.History.Pair(p)
	}
	c.Judgment = comparison.Judge()
	return c.Page()
}

// TestComparePage checks the page of a comparison from a phone's to a desktop's width, in both color schemes, with all tables open.
func TestComparePage(t *testing.T) {
	b := startChromium(t)
	for name, page := range map[string]report.Page{"fail": comparedPage(1200, 1.15), "days": comparedPage(200_000, 1.05), "soon": comparedPage(30, 1)} {
		address, _ := onDisk(t, name, page)
		for _, width := range []int{1440, 500, 390, 320} {
			for _, scheme := range []string{"light", "dark"} {
				t.Run(fmt.Sprintf("%s-%d-%s", name, width, scheme), func(t *testing.T) {
					p := b.open(t, address, width, scheme)
					p.until(t, drawn)
					p.picture(t, fmt.Sprintf("compare-%s-%d-%s.png", name, width, scheme))
					p.eval(t, `document.querySelectorAll('details').forEach(d => { d.open = true })`, nil)
					p.fits(t, width)
					p.readable(t)
					p.apart(t)
					p.alone(t, address)
				})
			}
		}
	}
}
