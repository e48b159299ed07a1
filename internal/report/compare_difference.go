package report

import (
	"fmt"
	"math"

	"replayd/internal/chart"
	"replayd/internal/number"
)

// differences compares each run with the first.
func differences(all []lookedAt, each [][]judgement, family int) Section {
	base := all[0]
	s := Section{Title: "Differences to " + base.name(), Short: "Differences", Text: evidence(all, family)}
	forest := chart.Plot{
		Title: "Differences in percent, with their intervals", X: chart.Axis{Label: "difference to " + base.name(), Unit: "%"}, Y: chart.Axis{}, Wide: true,
		Note: "Right of 0: more than " + base.name() + ". An interval that reaches over 0 shows no difference.",
	}
	for i, other := range all[1:] {
		t := chart.Table{Title: other.name() + " against " + base.name(), Folded: len(all) > 2, Columns: []chart.Column{
			{Name: "figure", Text: true}, {Name: base.name()}, {Name: other.name()}, {Name: "difference"}, {Name: "interval"}, {Name: "in percent"}, {Text: true},
		}}
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
			if a > 0 && f.unit != "%" && f.of != ofLateness && bounded {
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

// evidence describes the blocks of each run and the size of the family.
func evidence(all []lookedAt, family int) []string {
	text := fmt.Sprintf("The unit of evidence is a block of time. One family: %s on this page. If the runs are equal, the chance of any “better” or “worse” is about 5 %% at most.", number.Count(family, "figure"))
	for _, l := range all {
		text += fmt.Sprintf(" %s: %s.", l.name(), l.unit())
	}
	return []string{text, "One run against one run says nothing about how runs of one kind vary. For that, repeat runs."}
}
