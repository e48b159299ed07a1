package chart

import (
	"math"
	"strconv"
	"strings"
)

// pen builds a path in whole and tenth units of the box. The box is 1000 wide and high, with its origin at the top.
type pen struct{ strings.Builder }

func (p *pen) put(command string, x, y float64) {
	p.WriteString(command)
	p.number(x)
	p.WriteByte(' ')
	p.number(1000 - y)
}

func (p *pen) number(v float64) {
	p.WriteString(strconv.FormatFloat(math.Round(max(-2000, min(3000, v))*10)/10, 'f', -1, 64))
}

// line draws a line or a step, with a gap where a value cannot be shown.
func (c *Picture) line(s Series, class string) {
	d := pen{}
	command, last, end := "M", 0.0, -1
	for i := range min(len(s.X), len(s.Y)) {
		if !c.X.valid(s.X[i]) || !c.Y.valid(s.Y[i]) {
			command = "M"
			continue
		}
		x, y := c.XS.at(s.X[i]), c.YS.at(s.Y[i])
		if s.Kind == Step && command == "L" {
			d.put("L", x, last)
		}
		if command == "M" && (i+1 == len(s.Y) || !c.Y.valid(s.Y[i+1])) { // a single value is drawn too
			d.put("M", x-3, y)
			command = "L"
		}
		d.put(command, x, y)
		command, last, end = "L", y, i
	}
	if end < 0 {
		return
	}
	if s.Kind == Step && c.XS.at(s.X[end]) < 999 && c.Y.Ends != [2]float64{} { // an ECDF continues at its last value
		d.put("L", 1000, last)
	}
	c.Paths = append(c.Paths, path{Class: "line " + class, D: d.String()})
	if s.Name != "" {
		c.Ends = append(c.Ends, label{Y: Place(last), Class: class, Text: s.Name, X: Place(c.XS.at(s.X[end]))})
	}
}

// bars stacks the bars of a series on those of the series before.
func (c *Picture) bars(s Series, class string, base []float64) {
	d := pen{}
	for i, v := range s.Y {
		if !c.Y.valid(v) || v <= 0 {
			continue
		}
		left, right := c.XS.at(s.X[i]), c.XS.at(s.X[i+1])
		if gap := (right - left) * 0.06; len(s.Y) <= 100 {
			left, right = left+gap, right-gap
		}
		bottom := max(0, c.YS.at(base[i]))
		base[i] += v
		top := c.YS.at(base[i])
		d.put("M", left, bottom)
		d.put("L", left, top)
		d.put("L", right, top)
		d.put("L", right, bottom)
		d.WriteByte('z')
	}
	c.Paths = append(c.Paths, path{Class: "fill " + class, D: d.String()})
}

// area fills the space between two lines, with a gap where one of them is unknown.
func (c *Picture) area(s Series, class string) {
	d := pen{}
	var piece []int
	flush := func() {
		for k, i := range piece {
			d.put(map[bool]string{true: "M", false: "L"}[k == 0], c.XS.at(s.X[i]), c.YS.at(s.Y[i]))
		}
		for k := len(piece) - 1; k >= 0; k-- {
			d.put("L", c.XS.at(s.X[piece[k]]), max(0, c.YS.at(s.Low[piece[k]])))
		}
		if len(piece) > 0 {
			d.WriteByte('z')
		}
		piece = piece[:0]
	}
	for i := range min(len(s.X), len(s.Y)) {
		if !c.X.valid(s.X[i]) || !c.Y.valid(s.Y[i]) || !c.Y.valid(s.Low[i]) {
			flush()
			continue
		}
		piece = append(piece, i)
	}
	flush()
	c.Paths = append(c.Paths, path{Class: "area " + class, D: d.String()})
}

// manyPoints is the number of points beyond which they are drawn small.
const manyPoints = 200

// points draws points as short lines with round ends, which stay round if the box is stretched.
func (c *Picture) points(s Series, class string) {
	d, whiskers := pen{}, pen{}
	for i := range min(len(s.X), len(s.Y)) {
		if !c.X.valid(s.X[i]) || !c.Y.valid(s.Y[i]) {
			continue
		}
		x, y := c.XS.at(s.X[i]), c.YS.at(s.Y[i])
		d.put("M", x, y)
		d.WriteString("h0")
		if len(c.Y.Names) > 0 {
			whiskers.put("M", c.XS.at(s.Low[i]), y)
			whiskers.put("L", c.XS.at(s.High[i]), y)
		}
		if i < len(s.Text) && s.Text[i] != "" {
			c.Dots = append(c.Dots, label{X: Place(x), Y: Place(y), Class: class, Text: s.Text[i]})
		}
	}
	if whiskers.Len() > 0 {
		c.Paths = append(c.Paths, path{Class: "whisker " + class, D: whiskers.String()})
	}
	if len(s.X) > manyPoints {
		class += " many"
	}
	c.Paths = append(c.Paths, path{Class: "dots " + class, D: d.String()})
}
