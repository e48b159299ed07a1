package report

import (
	"fmt"
	"math"

	"replayd/internal/chart"
	"replayd/internal/measure"
	"replayd/internal/number"
)

func differences(all []runData, each [][]judgment, family int, pairs []string) Section {
	base := all[0]
	s := Section{Title: "Differences to " + base.name(), Short: "Differences", Text: append(evidence(all, family), pairs...)}
	forest := chart.Plot{
		Title: "Differences in percent, with their intervals", X: chart.Axis{Label: "difference to " + base.name(), Unit: "%"}, Y: chart.Axis{}, Wide: true,
		Note: "Right of 0: more than " + base.name() + ". An interval that reaches over 0 shows no difference.",
	}
	for i, other := range all[1:] {
		t := chart.Table{Title: other.name() + " against " + base.name(), Folded: len(all) > 2}
		t.Columns = chart.Columns("figure", "", "", "difference", "interval", "in percent", "<")
		t.Columns[1].Name, t.Columns[2].Name = base.name(), other.name() // which may begin with anything
		points := chart.Series{Kind: chart.Points}
		for _, j := range each[i] {
			f, a, b, d := j.figure, j.from.Value, j.to.Value, j.interval()
			bounded := !math.IsInf(d.Low, 0) && !math.IsInf(d.High, 0)
			bounds, share, unit := "–", "–", f.differenceUnit()
			if bounded {
				bounds = signed(d.Low, unit) + " to " + signed(d.High, unit)
			}
			if a != 0 {
				share = signed(100*d.Value/a, "%")
			}
			t.Rows = append(t.Rows, []string{f.name, number.Value(a, f.unit), number.Value(b, f.unit), signed(d.Value, unit), bounds, share, j.verdict()})
			if a > 0 && f.unit != "%" && f.of != measure.Lateness && bounded {
				forest.Y.Names = append([]string{f.name}, forest.Y.Names...) // the first figure goes to the top
				points.X, points.Y = append(points.X, 100*d.Value/a), append([]float64{float64(len(points.Y))}, points.Y...)
				points.Low, points.High = append(points.Low, 100*d.Low/a), append(points.High, 100*d.High/a)
			}
		}
		s.Tables = append(s.Tables, t)
		forest.Series = []chart.Series{points}
	}
	if len(forest.Y.Names) > 0 && len(all) == 2 {
		forest.Marks = []chart.Mark{{Name: "no difference", At: 0, X: true}}
		forest.Table = &s.Tables[0]
		s.Plots = []chart.Plot{forest}
	}
	return s
}

// Assumption is what verdicts on two runs rest on.
const Assumption = "One run against one run says nothing about how runs of one kind vary: this assumes that they differ by " +
	"nothing but their servers that lasts longer than a few blocks. A server that was slower during one run, because of " +
	"another client, heat or a full cache, looks like a slower server. Repeat runs, in turns."

func evidence(all []runData, family int) []string {
	text := fmt.Sprintf("The unit of evidence is a block of time. One family: %s on this page. If the runs are equal, the chance of any “better” or “worse” is about 5 %% at most.", number.Count(family, "figure"))
	for _, l := range all {
		text += fmt.Sprintf(" %s: %s.", l.name(), l.unit())
	}
	return []string{text, Assumption}
}

func signed(v float64, unit string) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "–"
	}
	switch {
	case v < 0:
		return "−" + number.Value(-v, unit)
	case v > 0:
		return "+" + number.Value(v, unit)
	}
	return number.Value(0, unit)
}
