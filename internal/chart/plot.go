// Package chart draws plots as SVG: scales, ticks, lines, bars, clouds. It knows no runs.
package chart

import "math"

// A Table is a table with a heading for each column.
type Table struct {
	Title   string
	Columns []Column
	Rows    [][]string
	Folded  bool // behind its title, which opens it
}

// A Column is the heading of a column. Figures stand right, Text left. The first column names the rows.
type Column struct {
	Name string
	Text bool
}

// A Plot is one picture. Points of which a coordinate is not finite are left out, and so are those that a logarithmic axis
// cannot show.
type Plot struct {
	Title  string // says what is seen
	Note   string // below the picture: how it was made
	X, Y   Axis
	Series []Series
	Marks  []Mark
	Table  *Table // the figures behind the picture; nil: made from the series
	Wide   bool   // the page's whole width, instead of two pictures beside each other
}

// An Axis is one direction of a plot. Its ends are those of the data unless Ends are given; bars and areas make it begin at 0.
type Axis struct {
	Label string // what it is, without the unit
	// Unit of the values: "ms" (shown as µs, ms or s), "s" (shown as s, min or h), "%" or any other, such as "tokens" or "tokens/s".
	Unit  string
	Log   bool
	Ends  [2]float64 // both 0: from the data
	Names []string   // of places 0, 1, 2 …: for bars on the x axis, for points on the y axis
}

// A Series is one line, cloud or row of bars of a plot. X and Y have the same length, but for bars over numbers.
type Series struct {
	Name string // stands at its end; "" for the only one
	Kind Kind
	X, Y []float64
	Low  []float64 // of Area: the lower edge, nil: 0; of Points: the lower end of an interval around Y, with High; around X where Y has names
	High []float64
	Text []string // of Points: a name for each
	Soft bool     // in the background: a frame for the others
	Ramp int      // not 0: the colour of the first series, weaker by this step; for p50, p90, p99 of one thing
}

// Add appends a point.
func (s *Series) Add(x, y float64) { s.X, s.Y = append(s.X, x), append(s.Y, y) }

// A Kind is how a series is drawn.
type Kind int

// Kinds of series.
const (
	Line   Kind = iota // from point to point; a gap where Y is not a number
	Step               // Y holds from its X to the next
	Bars               // X are len(Y)+1 edges; or, with Axis.Names, len(Y) places. Series of bars stand on each other
	Area               // between Low and Y
	Points             // some, each with its name
	Cloud              // any number, as density
)

// A Mark is a line across the plot with its name: a bound, a percentile.
type Mark struct {
	Name string
	At   float64
	X    bool // of the x axis: it stands upright
}

// valid says whether a value can be shown on an axis.
func (a Axis) valid(v float64) bool {
	return !math.IsNaN(v) && !math.IsInf(v, 0) && (!a.Log || v > 0)
}
