package main

import (
	"bytes"
	"strings"
	"testing"

	"replayd/internal/canary"
	"replayd/internal/cli"
	"replayd/internal/measure"
)

// A run is not measured where the requests that are not judged decide. One that missed its attainment even if all of them were good has
// missed it.
func TestUnmeasured(t *testing.T) {
	for _, c := range []struct {
		good, unjudged, ok, expected int64
		least                        float64
		want                         bool
	}{
		{100, 0, 100, 100, 1, false},
		{95, 5, 100, 100, 1, false},
		{94, 6, 100, 100, 1, true},
		{0, 100, 100, 100, 0.9, true},
		{0, 100, 100, 100, 0, false}, // nothing was required
		{50, 10, 100, 100, 0.9, false},
		{85, 10, 100, 100, 0.9, true},
		{0, 0, 0, 100, 1, false},
	} {
		l := measure.Ledger{Good: c.good, Unjudged: c.unjudged, Expected: c.expected, Outcomes: map[measure.Outcome]int64{measure.OK: c.ok}}
		if got := unmeasured(l, c.least); got != c.want {
			t.Errorf("%+v: got %v", c, got)
		}
	}
}

// Other clients on one of two equal servers are a cause of wander, so --aa tells them.
func TestWanderTellsLoads(t *testing.T) {
	blocks := make([]canary.Block, 60)
	for i := range blocks {
		for m := range blocks[i].Metrics {
			blocks[i].Metrics[m].Ratio = 1
		}
	}
	for _, c := range []struct {
		last canary.Judgment
		want string
	}{
		{canary.Judgment{}, ""},
		{canary.Judgment{Others: [2]float64{0.1, 0.15}}, ""},
		{
			canary.Judgment{Others: [2]float64{0.1, 0.35}},
			"loads: other clients got 35 % of the candidate's output tokens, and 10 % of the baseline's\n",
		},
		{
			canary.Judgment{Unread: [2]bool{true, true}},
			"loads: nothing is known of other clients: the metrics pages of both sides were not read, or count no output tokens\n",
		},
	} {
		var out bytes.Buffer
		o := compareCommand{cli.NewCompare()}
		if err := o.printWander(&world{out: &out}, &comparePage{blocks: blocks}, &c.last, nil); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); !strings.HasSuffix(got, c.want) || strings.Contains(got, "loads: ") != (c.want != "") {
			t.Errorf("got %q, want %q at the end", got, c.want)
		}
	}
}
