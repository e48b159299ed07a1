package metrics

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"replayd/internal/canary"
	"replayd/test/outside"
)

// comparing returns a registry with two comparisons of one server that is slower by 20 %: one for a verdict, and one that never ends.
func comparing(t *testing.T) *prometheus.Registry {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	all := NewComparisons(reg)
	var show []func() Compared
	for _, mode := range []canary.Mode{canary.ModeVerdict, canary.ModeWatch} {
		o := canary.Defaults()
		o.Mode, o.MinTime = mode, 20*time.Second
		c := canary.New(o)
		for i := range 3000 {
			p := canary.Pair{At: time.Unix(int64(i), 0), Void: i%100 == 99}
			for side, d := range []time.Duration{100 * time.Millisecond, 120 * time.Millisecond} {
				p.Requests[side] = canary.Request{Sent: p.At, First: p.At.Add(d), End: p.At.Add(2 * d), TTFT: d, TPOT: d / 10, E2E: 2 * d, Bad: side == 1 && i%50 == 7}
			}
			c.Add(&p)
		}
		show = append(show, func() Compared {
			return Compared{Name: string(mode), Workload: "chat", Baseline: "stable", Candidate: "canary", Options: o, Epoch: time.Unix(1_700_000_000, 0), Judgement: c.Judge()}
		})
	}
	all.Show(show)
	return reg
}

// The page of comparisons is the golden one, promlint has nothing to say, and the reference lists the same series.
func TestPageOfComparisons(t *testing.T) {
	reg := comparing(t)
	page := text(t, reg)
	golden(t, "comparisons.golden", page)
	if problems, err := promlint.New(strings.NewReader(page)).Lint(); err != nil || len(problems) > 0 {
		t.Errorf("promlint: %v %v", problems, err)
	}
	want, err := outside.Tables("../../docs/reference/metrics.md", "Comparisons", map[string][]string{"series": {"comparison"}, "series of the state file": nil})
	if err != nil {
		t.Fatal(err)
	}
	got := outside.Page(gather(t, reg)).Series()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/reference/metrics.md and the page (-document +page):\n%s", diff)
	}
	if n := gather(t, reg).sum("replayd_state_errors_total"); n != 0 {
		t.Errorf("replayd_state_errors_total is %v", n)
	}
}

// Nothing but the counter of failed writes is on the page without a comparison, and nothing is left of one that is gone.
func TestPageWithoutComparisons(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	all := NewComparisons(reg)
	for range 2 {
		if got := slices.Collect(maps.Keys(gather(t, reg))); !slices.Equal(got, []string{"replayd_state_errors_total"}) {
			t.Errorf("the page has %v", got)
		}
		all.Show([]func() Compared{func() Compared { return Compared{Judgement: canary.New(canary.Defaults()).Judge()} }})
		all.Show(nil)
	}
}

// The tables of label values in docs/reference/metrics.md have all of them and no others.
func TestDocumentedValuesOfComparisons(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	directions := map[canary.Direction]bool{}
	for _, m := range canary.Metrics {
		for _, d := range m.Directions() {
			directions[d] = true
		}
	}
	for heading, want := range map[string][]string{
		"### Verdicts":              texts(canary.Verdicts),
		"### Reasons of undecided":  texts(canary.Reasons),
		"### Skipped blocks":        texts(canary.Skips),
		"### Directions of changes": texts(slices.Collect(maps.Keys(directions))),
	} {
		got := firstCells(string(page), heading)
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("docs/reference/metrics.md, %s (-want +document):\n%s", heading, diff)
		}
	}
}
