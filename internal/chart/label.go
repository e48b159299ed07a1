package chart

import (
	"cmp"
	"slices"

	"replayd/internal/number"
)

// Space that a text takes, in permille of a box with the height of the style sheet.
const (
	EndRoom   = 85
	endLetter = 9 // letters that fit at the right of a box

	markLetter = 34 // width of a letter of a mark's name in a narrow box
	dotLetter  = 38 // width of a letter of a point's name in a narrow box
)

// spreadEnds moves the names at the ends of lines apart. It reports whether they fit: all lines have a name, no name is
// long, and each is near its line.
func (c *Picture) spreadEnds(names int) bool {
	if len(c.Ends) != names || names > 6 {
		return false
	}
	slices.SortStableFunc(c.Ends, func(a, b label) int { return cmp.Compare(a.Y, b.Y) })
	before := Place(-1000)
	for i := range c.Ends {
		y := c.Ends[i].Y
		at := max(y, before+EndRoom)
		if at-y > 2*EndRoom || at > 1040 || len(c.Ends[i].Text) > endLetter || c.Ends[i].X < 900 {
			return false
		}
		c.Ends[i].Y, before = at, at
	}
	return true
}

// rules places the marks. Names of vertical marks that would overlap go into another row.
func (c *Picture) rules() {
	var ends []float64 // of the last name in each row
	for _, m := range c.Marks {
		axis, s := c.Y, c.YS
		if m.X {
			axis, s = c.X, c.XS
		}
		text := m.Name
		if m.At != 0 {
			text += " " + number.Value(m.At, axis.Unit)
		}
		if !axis.valid(m.At) {
			continue
		}
		width := markLetter * float64(len([]rune(text)))
		r := rule{At: Place(s.at(m.At)), Text: text, X: m.X, Late: m.X && s.at(m.At)+width > 1000, Low: m.X && c.Y.Ends != [2]float64{}}
		if m.X {
			from := s.at(m.At)
			if r.Late {
				from -= width
			}
			for r.Row < len(ends) && ends[r.Row] > from {
				r.Row++
			}
			if r.Row == len(ends) {
				ends = append(ends, 0)
			}
			ends[r.Row] = from + width
		}
		c.Lines = append(c.Lines, r)
	}
}
