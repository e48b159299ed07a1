package report

import (
	"math"
)

// differences holds each run against the first.
func differences(all []lookedAt) Section {
	base := all[0]
	s := Section{Title: "Differences to " + base.name(), Short: "Differences"}
	forest := Plot{
		Title: "Differences in percent, with 95 % intervals", X: Axis{Label: "difference to " + base.name(), Unit: "%"}, Y: Axis{}, Wide: true,
		Note: "Right of 0: more than " + base.name() + ". An interval that reaches over 0 shows no difference.",
	}
	for _, other := range all[1:] {
		t := PageTable{Title: other.name() + " against " + base.name(), Folded: len(all) > 2, Columns: []Column{
			{Name: "figure", Text: true}, {Name: base.name()}, {Name: other.name()}, {Name: "difference"}, {Name: "95 % interval"}, {Name: "in percent"}, {Text: true},
		}}
		points := Series{Kind: Points}
		for _, f := range comparedFigures {
			a, b := f.of(base), f.of(other)
			if math.IsNaN(a.Value) || math.IsNaN(b.Value) {
				continue
			}
			d := difference(b, a)
			bounds := "–"
			if !math.IsInf(d.Low, 0) && !math.IsInf(d.High, 0) {
				bounds = signed(d.Low, f.unit) + " to " + signed(d.High, f.unit)
			}
			share := "–"
			if a.Value != 0 {
				share = signed(100*d.Value/a.Value, "%")
			}
			t.Rows = append(t.Rows, []string{f.name, Value(a.Value, f.unit), Value(b.Value, f.unit), signed(d.Value, f.unit), bounds, share, verdict(f, d)})
			if a.Value > 0 && f.unit != "%" && f.name != "Lateness p99" && !math.IsInf(d.Low, 0) && !math.IsInf(d.High, 0) {
				forest.Y.Names = append([]string{f.name}, forest.Y.Names...) // the first at the top
				points.X, points.Y = append(points.X, 100*d.Value/a.Value), append([]float64{float64(len(points.Y))}, points.Y...)
				points.Low, points.High = append(points.Low, 100*d.Low/a.Value), append(points.High, 100*d.High/a.Value)
			}
		}
		s.Tables = append(s.Tables, t)
		forest.Series = []Series{points}
	}
	if len(forest.Y.Names) > 0 && len(all) == 2 {
		forest.Marks = []Mark{{Name: "no difference", At: 0, X: true}}
		forest.Table = &s.Tables[0]
		s.Plots = []Plot{forest}
	}
	return s
}

// verdict says what an interval shows.
func verdict(f comparedFigure, d interval) string {
	switch {
	case !d.apart():
		return "no difference shown"
	case (d.Value > 0) == f.larger:
		return "better"
	}
	return "worse"
}
