package comparison

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"

	"replayd/internal/canary"
	"replayd/test/outside"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// gather returns the page of a registry.
func gather(t *testing.T, reg *prometheus.Registry) outside.Page {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	page := outside.Page{}
	for _, f := range families {
		page[f.GetName()] = f
	}
	return page
}

// comparing returns a registry with two comparisons of three pods that are slower by 20 %: one for a verdict, and one that never ends.
func comparing(t *testing.T) *prometheus.Registry {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	all := NewCollector(reg)
	var show []func() Status
	for _, mode := range []canary.Mode{canary.ModeVerdict, canary.ModeWatch} {
		o := canary.Defaults()
		o.Mode, o.MinTime = mode, 20*time.Second
		c := canary.New(o)
		c.Count(all.Counters(string(mode)))
		for i := range 3000 {
			p := canary.Pair{At: time.Unix(int64(i), 0), Void: map[bool]canary.Void{true: canary.VoidLate}[i%100 == 99]}
			for side, d := range []time.Duration{100 * time.Millisecond, 120 * time.Millisecond} {
				p.Requests[side] = canary.Request{Sent: p.At, First: p.At.Add(d), End: p.At.Add(2 * d), TTFT: d, TPOT: d / 10, E2E: 2 * d, Bad: side == 1 && i%50 == 7}
				p.Requests[side].Pod = uint16(1 + [2]int{i, i / 3}[side]%3)
				p.Requests[side].Answer = canary.Answer{Tokens: 100 - 20*side, Finish: canary.Finish(i % 3)}
			}
			c.Add(&p)
		}
		show = append(show, func() Status {
			return Status{
				Name: string(mode), Workload: "chat", Baseline: "stable", Candidate: "canary", Options: o,
				Epoch: time.Unix(1_700_000_000, 0), Judgment: c.Judge(), Counters: all.Counters(string(mode)),
			}
		})
	}
	all.Show(show)
	return reg
}

// The page of comparisons is the golden one, promlint has nothing to say, and the reference lists the same series.
func TestPageOfComparisons(t *testing.T) {
	reg := comparing(t)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&b, f); err != nil {
			t.Fatal(err)
		}
	}
	page := b.String()
	const path = "testdata/comparisons.golden"
	if *update {
		if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(golden), page); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
	if problems, err := promlint.New(strings.NewReader(page)).Lint(); err != nil || len(problems) > 0 {
		t.Errorf("promlint: %v %v", problems, err)
	}
	want, err := outside.Tables("../../docs/reference/metrics.md", "Comparisons", map[string][]string{"series": {"comparison"}, "series of the state file": nil})
	if err != nil {
		t.Fatal(err)
	}
	got := gather(t, reg).Series()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/reference/metrics.md and the page (-document +page):\n%s", diff)
	}
	if n := gather(t, reg).Sum("replayd_state_errors_total"); n != 0 {
		t.Errorf("replayd_state_errors_total is %v", n)
	}
}

// Nothing but the counter of failed writes is on the page without a comparison, and nothing is left of one that is gone.
func TestPageWithoutComparisons(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	all := NewCollector(reg)
	for range 2 {
		if got := slices.Collect(maps.Keys(gather(t, reg))); !slices.Equal(got, []string{"replayd_state_errors_total"}) {
			t.Errorf("the page has %v", got)
		}
		all.Show([]func() Status{func() Status { return Status{Judgment: canary.New(canary.Defaults()).Judge()} }})
		all.Show(nil)
	}
}

// The counters of names that are gone are kept for their return, up to a bound. Those that are shown are kept in any case.
func TestCountersOfManyNames(t *testing.T) {
	all := NewCollector(prometheus.NewRegistry())
	first := Status{Name: "first", Counters: all.Counters("first")}
	all.Show([]func() Status{func() Status { return first }})
	for i := range 10 * maxNames {
		all.Counters(strconv.Itoa(i))
		all.Show([]func() Status{func() Status { return first }})
		if len(all.counters) > maxNames {
			t.Fatalf("%d counters are kept, want at most %d", len(all.counters), maxNames)
		}
	}
	if all.Counters("first") != first.Counters {
		t.Error("a comparison that is shown has lost its counters")
	}
}

// The tables of label values in docs/reference/metrics.md have all of them and no others.
func TestDocumentedValuesOfComparisons(t *testing.T) {
	directions := map[canary.Direction]bool{}
	for _, m := range canary.Metrics {
		for _, d := range m.Directions() {
			directions[d] = true
		}
	}
	for _, c := range []struct {
		heading, label string
		want           []string
	}{
		{"### Verdicts", "verdict", texts(canary.Verdicts)},
		{"### Reasons of undecided", "reason", texts(canary.Reasons)},
		{"### Skipped blocks", "reason", texts(canary.Skips)},
		{"### Void pairs", "reason", texts(canary.Voids)},
		{"### Ends of answers", "finish_reason", texts(canary.Finishes[:])},
		{"### Directions of changes", "direction", texts(slices.Collect(maps.Keys(directions)))},
	} {
		rows, err := outside.Fields("../../docs/reference/metrics.md", c.heading, "`"+c.label+"`")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range rows[1:] { // without the table's heading
			got = append(got, r[0])
		}
		slices.Sort(got)
		slices.Sort(c.want)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("docs/reference/metrics.md, %s (-want +document):\n%s", c.heading, diff)
		}
	}
}

func texts[T any](values []T) (all []string) {
	for _, v := range values {
		all = append(all, fmt.Sprint(v))
	}
	return all
}
