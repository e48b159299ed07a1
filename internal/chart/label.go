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

// A box is the space of a text or a point, in permille of the picture.
type box struct{ left, right, bottom, top float64 }

func (b box) overlaps(other box) bool {
	return b.left < other.right && other.left < b.right && b.bottom < other.top && other.bottom < b.top
}

// placeDots puts the name of each point above or below it, to the right or to the left, where it covers neither a point
// nor another name. A name without such a place is left out: the table has it.
func (c *Picture) placeDots() {
	var taken []box
	for _, d := range c.Dots {
		x, y := float64(d.X), float64(d.Y)
		taken = append(taken, box{x - 8, x + 8, y - 20, y + 20})
	}
	var named []label
	for _, d := range c.Dots {
		x, y, width := float64(d.X), float64(d.Y), dotLetter*float64(len([]rune(d.Text)))
		for _, side := range []struct {
			class string
			box   box
		}{
			{"", box{x + 9, x + width, y + 21, y + EndRoom}},
			{" left", box{x - width, x - 9, y + 21, y + EndRoom}},
			{" under", box{x + 9, x + width, y - EndRoom, y - 21}},
			{" left under", box{x - width, x - 9, y - EndRoom, y - 21}},
		} {
			if side.box.left < 0 || side.box.right > 1000 || side.box.bottom < 0 || slices.ContainsFunc(taken, side.box.overlaps) {
				continue
			}
			taken = append(taken, side.box)
			d.Class += side.class
			named = append(named, d)
			break
		}
	}
	c.Dots = named
}

// rules places the marks. The names of vertical marks stand above the picture. Names that would overlap go into another
// row.
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
		r := rule{At: Place(s.at(m.At)), Text: text, X: m.X, Late: m.X && s.at(m.At)+width > 1000}
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
			c.Rows = len(ends)
		}
		c.Lines = append(c.Lines, r)
	}
}
