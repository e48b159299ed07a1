package chart

import (
	"fmt"
	"slices"
	"strings"
)

// Grid returns the path of the grid lines of an axis.
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

// read reports whether the picture shows points, whose places are read on both axes.
func (c Picture) read() bool { return c.Free() || c.Cloud != nil }

// Height returns the height of a picture with a name for each line, or "" for other pictures.
func (c Picture) Height() string {
	if len(c.Y.Names) == 0 {
		return ""
	}
	return fmt.Sprintf("%drem", 2+3*len(c.Y.Names)/2)
}

// Free reports whether there are points. Points may reach over the edge and need room around them.
func (p Plot) Free() bool {
	return slices.ContainsFunc(p.Series, func(s Series) bool { return s.Kind == Points })
}

// XName returns the label of the x axis, with the unit unless each tick has it.
func (c Picture) XName() string { return c.X.name() }

// YName returns the label of the y axis, with the unit unless each tick has it.
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
