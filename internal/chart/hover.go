package chart

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"replayd/internal/number"
)

// A spoken is the tooltip of one place on the x axis.
type spoken struct {
	At   float64 `json:"at"` // 0 to 100
	Text string  `json:"text"`
}

// readingPlaces is the number of tooltips if the series do not have the same places.
const readingPlaces = 100

func (c *Picture) readings() []spoken {
	var all []spoken
	for _, row := range c.rows(readingPlaces) {
		var parts []string
		for i, s := range c.shown() {
			if !c.Y.valid(row.values[i]) {
				continue
			}
			text := number.Value(row.values[i], c.Y.Unit)
			if s.Name != "" {
				text = s.Name + " " + text
			}
			parts = append(parts, text)
		}
		if len(parts) > 0 {
			all = append(all, spoken{At: math.Round(row.at*100) / 1000, Text: row.name + ": " + strings.Join(parts, ", ")})
		}
	}
	return all
}

// shown returns the series that have a value of their own at each place.
func (p Plot) shown() []Series {
	return slices.DeleteFunc(slices.Clone(p.Series), func(s Series) bool {
		return s.Kind == Points || s.Kind == Cloud || s.Kind == Area
	})
}

type plotRow struct {
	at     float64
	name   string
	values []float64
}

// rows returns a row for each place of the series if they have the same places, otherwise rows at equal distances.
func (c *Picture) rows(places int) (rows []plotRow) {
	shown := c.shown()
	if len(shown) == 0 {
		return nil
	}
	first := shown[0]
	same := len(first.X) <= 400
	for _, s := range shown {
		same = same && slices.Equal(s.X, first.X) && (s.Kind == Bars) == (first.Kind == Bars)
	}
	if !same {
		for i := range places + 1 {
			at := 1000 * float64(i) / float64(places)
			x := c.XS.value(at)
			row := plotRow{at: at, name: number.Value(x, c.X.Unit)}
			for _, s := range shown {
				row.values = append(row.values, s.near(x))
			}
			rows = append(rows, row)
		}
		return rows
	}
	for i := range first.Y {
		x := first.X[i]
		row := plotRow{at: c.XS.at(x), name: number.Value(x, c.X.Unit)}
		switch {
		case first.Kind == Bars:
			row.at = (row.at + c.XS.at(first.X[i+1])) / 2
			row.name += " to " + number.Value(first.X[i+1], c.X.Unit)
		case !c.X.valid(x):
			continue
		}
		for _, s := range shown {
			row.values = append(row.values, s.Y[i])
		}
		rows = append(rows, row)
	}
	return rows
}

// near returns the value at x. A step has the last value before x; a line is interpolated.
func (s Series) near(x float64) float64 {
	i, found := slices.BinarySearch(s.X, x)
	switch {
	case found:
		return s.Y[i]
	case i == 0 && s.Kind == Step:
		return 0
	case i == 0, i >= len(s.Y) && s.Kind != Step:
		return math.NaN()
	case s.Kind == Step:
		return s.Y[i-1]
	}
	return s.Y[i-1] + (s.Y[i]-s.Y[i-1])*(x-s.X[i-1])/(s.X[i]-s.X[i-1])
}

func (c *Picture) figures() Table {
	if c.Table != nil {
		t := *c.Table
		t.Folded, t.Title = true, cmp.Or(t.Title, "Figures")
		return t
	}
	t := Table{Title: "Figures", Folded: true, Columns: []Column{{Name: c.X.Label, Text: true}}}
	for _, s := range c.shown() {
		t.Columns = append(t.Columns, Column{Name: cmp.Or(s.Name, c.Y.Label)})
	}
	for _, row := range c.rows(20) {
		cells := []string{row.name}
		for _, v := range row.values {
			cells = append(cells, number.Value(v, c.Y.Unit))
		}
		t.Rows = append(t.Rows, cells)
	}
	return t
}
