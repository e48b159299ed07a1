package chart

import (
	"fmt"
	"slices"
	"strings"
)

// Grid is the path of an axis' lines.
func (c Picture) Grid() string {
	d := pen{}
	for _, v := range c.YS.ticks {
		if at := c.YS.at(v); at > 1 {
			d.put("M", 0, at)
			d.WriteString("h1000")
		}
	}
	for i := range c.Y.Names {
		d.put("M", 0, c.YS.at(float64(i)))
		d.WriteString("h1000")
	}
	if c.read() {
		for _, v := range c.XS.ticks {
			d.put("M", c.XS.at(v), 0)
			d.WriteString("v-1000")
		}
	}
	return d.String()
}

// read says whether the picture is of points, whose places are read on both axes.
func (c Picture) read() bool { return c.Free() || c.Cloud != nil }

// Height is that of a picture with a name for each line; "" of others.
func (c Picture) Height() string {
	if len(c.Y.Names) == 0 {
		return ""
	}
	return fmt.Sprintf("%drem", 2+3*len(c.Y.Names)/2)
}

// Free says whether there are points: they may reach over the edge and need room around them.
func (p Plot) Free() bool {
	return slices.ContainsFunc(p.Series, func(s Series) bool { return s.Kind == Points })
}

// XName says what the axis shows, and its unit unless that stands at each tick.
func (c Picture) XName() string { return c.X.name() }

// YName is the same of the other axis.
func (c Picture) YName() string { return c.Y.name() }

func (a Axis) name() string {
	switch {
	case a.Unit == "ms" || a.Unit == "s" || a.Unit == "%" || a.Unit == "":
		return a.Label
	case a.Label == "" || strings.HasPrefix(a.Unit, a.Label):
		return a.Unit
	}
	return a.Label + ", " + a.Unit
}
