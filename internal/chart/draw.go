package chart

import (
	"fmt"
	"slices"
	"strconv"

	"replayd/internal/number"
)

// A Picture is a plot ready to be written. Its places are in permille of the plot's box.
type Picture struct {
	Plot
	ID       string
	XS, YS   scale
	XT, YT   []tick
	Paths    []path
	Ends     []label // at the right end of lines
	Dots     []label // at points
	Lines    []rule
	Rows     int // of names of marks above the picture
	Key      []label
	Read     []spoken
	Cloud    number.Object // that a browser draws; nil: none
	Measured Table
}

// A tick is a value on an axis. A narrow axis hides ticks marked Second, and a narrower one those marked Third.
type tick struct {
	At            Place
	Text          string
	Second, Third bool
}

type path struct{ Class, D string }

type label struct {
	X, Y        Place
	Class, Text string
}

type rule struct {
	At      Place
	Text    string
	X, Late bool // Late: near the right end, so the name goes to the left
	Row     int  // of its name above the picture, 0 at the top
}

// Draw returns the picture of a plot.
func (p Plot) Draw(id string) Picture {
	c := Picture{Plot: p, ID: id}
	c.XS, c.YS = p.scales()
	c.ticks()
	var base []float64 // tops of the bars so far
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
			base = append(base, make([]float64, max(0, len(s.Y)-len(base)))...)
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
	if len(c.Key) > 0 && c.spreadEnds(len(c.Key)) {
		c.Key = nil
	} else {
		c.Ends = nil
	}
	c.placeDots()
	c.rules()
	c.Read = c.readings()
	c.Measured = c.figures()
	return c
}

func (p Plot) scales() (x, y scale) {
	var xs, ys []float64
	var stack []float64
	for _, s := range p.Series {
		xs = append(xs, s.X...)
		if s.Kind == Area {
			ys = append(ys, s.Low...)
		} else {
			xs = slices.Concat(xs, s.Low, s.High)
		}
		values := slices.Clone(s.Y)
		for i, v := range values {
			if s.Kind == Bars && p.Y.valid(v) {
				stack = append(stack, make([]float64, max(0, i+1-len(stack)))...)
				stack[i] += v
				values[i] = stack[i]
			}
		}
		ys = append(ys, values...)
	}
	for _, m := range p.Marks {
		if m.X {
			xs = append(xs, m.At)
		} else {
			ys = append(ys, m.At)
		}
	}
	ya := p.Y
	ya.Zero = true
	return scaleOf(p.X, xs, p.Free()), scaleOf(ya, ys, true)
}

func (c *Picture) ticks() {
	c.XT = ticksOf(c.X, c.XS)
	c.YT = ticksOf(c.Y, c.YS)
	room := 0 // height of the names below the picture, in pixels
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
		all = append(all, tick{At: Place(s.at(float64(i))), Text: name})
	}
	for _, v := range s.ticks {
		all = append(all, tick{At: Place(s.at(v)), Text: tickText(v, a.Unit, s)})
	}
	if a.Ticks != nil {
		all = apart(all)
	}
	return all
}

// ownRoom is the least space between two ticks at the values of the data, in permille of the picture.
const ownRoom = 40

// apart leaves out ticks whose texts would overlap. The last tick stays.
func apart(ticks []tick) (kept []tick) {
	for _, t := range slices.Backward(ticks) {
		if len(kept) == 0 || kept[len(kept)-1].At-t.At >= ownRoom {
			kept = append(kept, t)
		}
	}
	slices.Reverse(kept)
	return kept
}

// A Place is a position on an axis, 0 to 1000. Style sheets have it in percent.
type Place float64

func (p Place) String() string { return strconv.FormatFloat(float64(p)/10, 'f', 2, 64) + "%" }

// Grid returns the path of the grid lines of an axis.
func (c Picture) Grid() string {
	d := pen{}
	for _, t := range c.YT {
		if t.At > 1 {
			d.put("M", 0, float64(t.At))
			d.WriteString("h1000")
		}
	}
	if c.read() {
		for _, v := range c.XS.ticks {
			d.put("M", c.XS.at(v), 0)
			d.WriteString("v-1000")
		}
	}
	return d.String()
}

// read reports whether the picture shows points, whose places are read on both axes.
func (c Picture) read() bool { return c.Free() || c.Cloud != nil }

// Height returns the height of a picture with a name for each line, or "" for other pictures.
func (c Picture) Height() string {
	if len(c.Y.Names) == 0 {
		return ""
	}
	return fmt.Sprintf("%drem", 2+3*len(c.Y.Names)/2)
}
