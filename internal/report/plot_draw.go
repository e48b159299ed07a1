package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A picture is a plot ready to be written: places in permille of the plot's box, as text.
type picture struct {
	Plot
	ID       string
	XS, YS   scale
	XT, YT   []tick
	Paths    []path
	Ends     []label // at the right of lines
	Dots     []label // at points
	Lines    []rule
	Key      []label
	Read     []reading
	Cloud    *cloud
	Measured PageTable
	Gutter   bool // there is something to read at the right
}

// A tick is a value on an axis; Second says that it goes where there is little room, Third where there is less.
type tick struct {
	At, Text      string
	Second, Third bool
}

// A path is a line or an area of one class.
type path struct{ Class, D string }

// A label is a text at a place.
type label struct{ X, Y, Class, Text string }

// A rule is a mark ready to be drawn.
type rule struct {
	At, Text string
	X, Late  bool // Late: in the right half, so that its name stands left of it
	Low      bool // its name stands at the foot, where the line of an ECDF is not
	Row      int  // of names beside each other
}

// draw makes the picture of a plot.
func (p Plot) draw(id string) picture {
	c := picture{Plot: p, ID: id}
	c.XS, c.YS = p.scales()
	c.ticks()
	names := 0
	for _, s := range p.Series {
		if s.Name != "" {
			names++
		}
	}
	base := make([]float64, 0)
	color := 0
	for _, s := range p.Series {
		if s.Ramp == 0 && !s.Soft {
			color++
		}
		class := fmt.Sprintf("s%d", (max(color, 1)-1)%8+1)
		switch {
		case s.Soft:
			class = "s0"
		case s.Ramp > 0:
			class += fmt.Sprintf(" r%d", min(s.Ramp, 3))
		case color > 8:
			class += " more"
		}
		switch s.Kind {
		case Line, Step:
			c.line(s, class)
		case Bars:
			for len(base) < len(s.Y) {
				base = append(base, 0)
			}
			c.bars(s, class, base)
		case Area:
			c.area(s, class)
		case Points:
			c.points(s, class)
		case Cloud:
			c.cloud(s, class)
		}
		if s.Name != "" {
			c.Key = append(c.Key, label{Class: class, Text: s.Name})
		}
	}
	if names > 0 && c.spreadEnds(names) {
		c.Key = nil
	} else {
		c.Ends = nil
	}
	c.rules()
	c.Gutter = len(c.Ends) > 0
	c.Read = c.readings()
	c.Measured = c.figures()
	return c
}

// scales fit the axes to all that is drawn.
func (p Plot) scales() (x, y scale) {
	xlo, xhi := math.Inf(1), math.Inf(-1)
	ylo, yhi := math.Inf(1), math.Inf(-1)
	ground := false
	var stack []float64
	for _, s := range p.Series {
		for _, v := range s.X {
			if p.X.valid(v) {
				xlo, xhi = min(xlo, v), max(xhi, v)
			}
		}
		values := [][]float64{s.Y, s.Low, s.High}
		if len(p.Y.Names) > 0 {
			values = values[:1]
			for _, v := range append(slices.Clone(s.Low), s.High...) {
				if p.X.valid(v) {
					xlo, xhi = min(xlo, v), max(xhi, v)
				}
			}
		}
		for _, values := range values {
			for i, v := range values {
				if !p.Y.valid(v) {
					continue
				}
				if s.Kind == Bars {
					for len(stack) <= i {
						stack = append(stack, 0)
					}
					stack[i] += v
					v = stack[i]
				}
				ylo, yhi = min(ylo, v), max(yhi, v)
			}
		}
		ground = ground || s.Kind == Bars || s.Kind == Step || s.Kind == Area && s.Low == nil
	}
	for _, m := range p.Marks {
		switch {
		case m.X && p.X.valid(m.At):
			xlo, xhi = min(xlo, m.At), max(xhi, m.At)
		case !m.X && p.Y.valid(m.At):
			ylo, yhi = min(ylo, m.At), max(yhi, m.At)
		}
	}
	free := false // points need room around them
	for _, s := range p.Series {
		free = free || s.Kind == Points
	}
	return scaleOf(p.X, xlo, xhi, false, free), scaleOf(p.Y, ylo, yhi, ground, true)
}

func (c *picture) ticks() {
	c.XT = ticksOf(c.X, c.XS)
	c.YT = ticksOf(c.Y, c.YS)
	room := 0 // that the names below the picture take, in pixels
	for _, t := range c.XT {
		room += 14 + 7*len([]rune(t.Text))
	}
	for i := range c.XT {
		c.XT[i].Second, c.XT[i].Third = i%2 == 1 && room > 320, i%2 == 1 && room > 180
	}
	for i := range c.YT {
		c.YT[i].Second = len(c.YS.ticks) > 7 && i%2 == 1
	}
}

func ticksOf(a Axis, s scale) (all []tick) {
	for i, name := range a.Names {
		all = append(all, tick{At: permille(s.at(float64(i))), Text: name})
	}
	for _, v := range s.ticks {
		all = append(all, tick{At: permille(s.at(v)), Text: tickText(v, a.Unit, s.hi, s.log)})
	}
	return all
}

// permille writes a place as a percentage for style sheets.
func permille(at float64) string { return strconv.FormatFloat(at/10, 'f', 2, 64) + "%" }

// pen collects a path in whole and tenth units of the box, which is 1000 wide and high with its origin at the top.
type pen struct {
	strings.Builder
	c *picture
}

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
func (c *picture) line(s Series, class string) {
	d := pen{c: c}
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
		if command == "M" && (i+1 == len(s.Y) || !c.Y.valid(s.Y[i+1])) { // a value alone is seen too
			d.put("M", x-3, y)
			command = "L"
		}
		d.put(command, x, y)
		command, last, end = "L", y, i
	}
	if end < 0 {
		return
	}
	if s.Kind == Step && c.XS.at(s.X[end]) < 999 && c.Y.Ends != [2]float64{} { // an ECDF stays at its end
		d.put("L", 1000, last)
	}
	c.Paths = append(c.Paths, path{Class: "line " + class, D: d.String()})
	if s.Name != "" {
		c.Ends = append(c.Ends, label{Y: permille(last), Class: class, Text: s.Name, X: permille(c.XS.at(s.X[end]))})
	}
}

// bars stand on those of the series before.
func (c *picture) bars(s Series, class string, base []float64) {
	d := pen{c: c}
	for i, v := range s.Y {
		if !c.Y.valid(v) || v <= 0 {
			continue
		}
		x, right := float64(i)-0.36, float64(i)+0.36
		if len(c.X.Names) == 0 {
			if i+1 >= len(s.X) {
				break
			}
			x, right = s.X[i], s.X[i+1]
		}
		left, right := c.XS.at(x), c.XS.at(right)
		if gap := (right - left) * 0.06; len(c.X.Names) == 0 && len(s.Y) <= 100 {
			left, right = left+gap, right-gap
		}
		bottom := 0.0
		if !c.YS.log || base[i] > 0 {
			bottom = max(0, c.YS.at(base[i]))
		}
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

// area fills what lies between two lines, in pieces where one of them is not known.
func (c *picture) area(s Series, class string) {
	d := pen{c: c}
	low := func(i int) float64 {
		if s.Low == nil {
			return 0
		}
		return max(0, c.YS.at(s.Low[i]))
	}
	var piece []int
	flush := func() {
		for k, i := range piece {
			d.put(map[bool]string{true: "M", false: "L"}[k == 0], c.XS.at(s.X[i]), c.YS.at(s.Y[i]))
		}
		for k := len(piece) - 1; k >= 0; k-- {
			d.put("L", c.XS.at(s.X[piece[k]]), low(piece[k]))
		}
		if len(piece) > 0 {
			d.WriteByte('z')
		}
		piece = piece[:0]
	}
	for i := range min(len(s.X), len(s.Y)) {
		if !c.X.valid(s.X[i]) || !c.Y.valid(s.Y[i]) || s.Low != nil && !c.Y.valid(s.Low[i]) {
			flush()
			continue
		}
		piece = append(piece, i)
	}
	flush()
	c.Paths = append(c.Paths, path{Class: "area " + class, D: d.String()})
}

// points are short lines with round ends, which stay round however the box is stretched.
func (c *picture) points(s Series, class string) {
	d, whiskers := pen{c: c}, pen{c: c}
	for i := range min(len(s.X), len(s.Y)) {
		if !c.X.valid(s.X[i]) || !c.Y.valid(s.Y[i]) {
			continue
		}
		x, y := c.XS.at(s.X[i]), c.YS.at(s.Y[i])
		d.put("M", x, y)
		d.WriteString("h0")
		if i < len(s.Low) && i < len(s.High) && c.Y.valid(s.Low[i]) && c.Y.valid(s.High[i]) {
			if len(c.Y.Names) > 0 {
				whiskers.put("M", c.XS.at(s.Low[i]), y)
				whiskers.put("L", c.XS.at(s.High[i]), y)
			} else {
				whiskers.put("M", x, c.YS.at(s.Low[i]))
				whiskers.put("L", x, c.YS.at(s.High[i]))
			}
		}
		if i < len(s.Text) && s.Text[i] != "" {
			side := class
			if x > 800 {
				side += " left"
			}
			c.Dots = append(c.Dots, label{X: permille(x), Y: permille(y), Class: side, Text: s.Text[i]})
		}
	}
	if whiskers.Len() > 0 {
		c.Paths = append(c.Paths, path{Class: "whisker " + class, D: whiskers.String()})
	}
	c.Paths = append(c.Paths, path{Class: "dots " + class, D: d.String()})
}
