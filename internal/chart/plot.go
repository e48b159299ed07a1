// Package chart draws plots as SVG: scales, ticks, lines, bars, clouds. It does not know about runs.
package chart

import (
	"math"
	"slices"
	"strings"
)

// A Table is a table with a heading for each column.
type Table struct {
	Title   string
	Columns []Column
	Rows    [][]string
	Folded  bool // collapsed under its title
}

// Known returns the table without columns that have no value in any row. A cell without a value is empty or a dash. The
// first column stays.
func (t Table) Known() Table {
	known := Table{Title: t.Title, Folded: t.Folded, Rows: make([][]string, len(t.Rows))}
	for i, column := range t.Columns {
		if i > 0 && !slices.ContainsFunc(t.Rows, func(row []string) bool { return row[i] != "" && row[i] != "–" }) {
			continue
		}
		known.Columns = append(known.Columns, column)
		for k, row := range t.Rows {
			known.Rows[k] = append(known.Rows[k], row[i])
		}
	}
	return known
}

// A Column is the heading of a column. Figures are right-aligned,
// Text is left-aligned. The first column names the rows.
type Column struct {
	Name string
	Text bool
}

// Columns returns the columns of these names. The first, and those whose name begins with <, are left-aligned.
func Columns(names ...string) []Column {
	columns := make([]Column, len(names))
	for i, name := range names {
		name, text := strings.CutPrefix(name, "<")
		columns[i] = Column{name, text || i == 0}
	}
	return columns
}

// A Plot is one picture. It leaves out points that an axis cannot show: a coordinate is not finite, or not positive on
// a logarithmic axis.
type Plot struct {
	Title  string // states what the picture shows
	Note   string // below the picture: how it was made
	X, Y   Axis
	Series []Series
	Marks  []Mark
	Table  *Table // the figures behind the picture; nil: computed from the series but Points and Cloud
	Wide   bool   // takes the whole width of the page instead of half
}

// An Axis is one direction of a plot. Its range is that of the data unless Ends is set. A linear y axis starts at 0, so
// that lengths can be compared.
type Axis struct {
	Label string // the quantity, without the unit
	// Unit of the values: "ms" (shown as µs, ms or s), "s" (shown as s, min or h), "%" or any other, such as "tokens" or "tokens/s".
	Unit  string
	Log   bool
	Zero  bool       // start at 0; y axes do so anyway
	Whole bool       // the values are counts: ticks are whole numbers
	Ticks []float64  // the only ticks, in ascending order; nil: round numbers
	Ends  [2]float64 // both 0: from the data
	Names []string   // of the y axis, for points: of its places 0, 1, 2 …
}

// A Series is one line, cloud or row of bars of a plot. X and Y have the same length, except for bars.
type Series struct {
	Name string // shown at the end of the line; "" for a single series
	Kind Kind
	X, Y []float64
	Low  []float64 // of Area: the lower edge; of Points, if the y axis has Names: the low end of an interval of X
	High []float64 // the high end of that interval
	Text []string  // of Points: a name for each
	Soft bool      // in the background: a frame for the others
	Ramp int       // not 0: a weaker shade of the first series' color, for p50, p90, p99 of one quantity
}

// Add appends a point.
func (s *Series) Add(x, y float64) { s.X, s.Y = append(s.X, x), append(s.Y, y) }

// A Kind is how a series is drawn.
type Kind int

// Kinds of series.
const (
	Line   Kind = iota // from point to point; a gap where Y is NaN
	Step               // Y holds from its X to the next
	Bars               // X has len(Y)+1 edges; series of bars are stacked
	Area               // between Low and Y
	Points             // a few points, each with its name
	Cloud              // any number of points, as density
)

// A Mark is a line across the plot with its name: a bound, a percentile.
type Mark struct {
	Name string
	At   float64
	X    bool // on the x axis: the line is vertical
}

func (a Axis) valid(v float64) bool {
	return !math.IsNaN(v) && !math.IsInf(v, 0) && (!a.Log || v > 0)
}

// Free reports whether there are points. Points may reach over the edge and need room around them.
func (p Plot) Free() bool {
	return slices.ContainsFunc(p.Series, func(s Series) bool { return s.Kind == Points })
}

// Name returns the label with the unit, unless each tick has it.
func (a Axis) Name() string {
	switch {
	case a.Unit == "ms" || a.Unit == "s" || a.Unit == "%" || a.Unit == "":
		return a.Label
	case a.Label == "" || strings.HasPrefix(a.Unit, a.Label):
		return a.Unit
	}
	return a.Label + ", " + a.Unit
}
