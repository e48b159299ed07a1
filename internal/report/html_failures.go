package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"replayd/internal/chart"
	"replayd/internal/measure"
	"replayd/internal/number"
	"replayd/internal/result"
)

const failureBins = 60

// failures shows how requests ended, and plots the failures over time. It is empty if all requests ended ok.
func (l runData) failures() Section {
	s := Section{Short: "Failures"}
	by := map[measure.Outcome][]result.Row{}
	for _, r := range l.rows {
		by[r.Outcome] = append(by[r.Outcome], r)
	}
	if len(by[measure.OK]) == len(l.rows) {
		return s
	}
	// All outcomes but ok, the most frequent first.
	ended := slices.DeleteFunc(measure.Outcomes(), func(o measure.Outcome) bool {
		return o == measure.OK || len(by[o]) == 0
	})
	slices.SortStableFunc(ended, func(a, b measure.Outcome) int { return cmp.Compare(len(by[b]), len(by[a])) })
	s.Title = fmt.Sprintf("%s of %s requests did not end ok: mostly %s", number.Whole(len(l.rows)-len(by[measure.OK])), number.Whole(len(l.rows)), ended[0])
	t := chart.Table{Title: "How requests ended"}
	t.Columns = chart.Columns("outcome", "requests", "share", "95 % interval", "<the first one said")
	for _, o := range append([]measure.Outcome{measure.OK}, ended...) {
		n := len(by[o])
		text := ""
		if n > 0 && o != measure.OK {
			text = cutText(by[o][0].Error, 200)
		}
		share := l.share(func(of measure.Outcome) bool { return of == o }).Share(len(l.rows))
		t.Rows = append(t.Rows, []string{string(o), number.Whole(n), number.Percent(n, len(l.rows)), fmt.Sprintf("%s to %s %%", number.Digits(100*share.Low, 3), number.Digits(100*share.High, 3)), text})
	}
	s.Tables = []chart.Table{t}
	if l.seconds <= 0 {
		return s
	}
	width := timeBin(l.seconds, failureBins)
	n := int(math.Ceil(l.seconds/width - 1e-9))
	edges := make([]float64, n+1)
	for i := range edges {
		edges[i] = float64(i) * width
	}
	p := chart.Plot{
		Title: "When requests failed", X: chart.Axis{Label: "time of the end", Unit: "s", Ends: [2]float64{0, l.seconds}}, Y: chart.Axis{Label: "requests", Unit: "requests", Whole: true}, Wide: true,
		Note: fmt.Sprintf("Failed requests in each %s, stacked by outcome.", number.Value(width, "s")),
	}
	for _, o := range ended[:min(len(ended), 7)] {
		counts := make([]float64, n)
		for _, r := range by[o] {
			counts[min(n-1, max(0, int(l.at(cmp.Or(r.End, r.Start))/width)))]++
		}
		p.Series = append(p.Series, chart.Series{Name: string(o), Kind: chart.Bars, X: edges, Y: counts})
	}
	s.Plots = []chart.Plot{p}
	return s
}
