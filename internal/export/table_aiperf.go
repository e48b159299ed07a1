package export

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"replayd/internal/result"
	"replayd/internal/terminal"
)

// consoleTags lists the rows of AIPerf's table that follow the rows of quantities, in AIPerf's order.
var consoleTags = []string{"output_token_throughput", "request_throughput", "request_count", "goodput"}

// longName is the longest name of a metric that has its unit on
// the same line. For a longer name the unit goes on the next line.
const longName = 30

// WriteAIPerfTable prints a run in the layout of AIPerf's console: a box of metrics with their distributions, then how long it
// took and how much of it succeeded. Percentiles of the settings are columns of their own.
//
// A width above 0 is the terminal's: columns that do not fit are left out.
func WriteAIPerfTable(w io.Writer, r result.Run, width int) error {
	f := r.Statistics()
	columns, cells := aiperfCells(f, r.Settings)
	title := "replayd | LLM Metrics"
	if r.Settings.Model != "" {
		title += " | " + terminal.Name(r.Settings.Model)
	}
	out := &strings.Builder{}
	writeBox(out, title, columns, cells, width, "std", "min", "p90", "max")
	fmt.Fprintf(out, "\nBenchmark Duration: %.2f sec\n", f.Seconds())
	for _, line := range footer(r, f) {
		out.WriteString(terminal.Fit(line+"\n", width))
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// aiperfCells returns the headings and the rows of the table.
func aiperfCells(f result.Statistics, s result.Settings) (columns []string, rows [][]string) {
	percentiles := []float64{99, 90, 50}
	for _, p := range s.Percentiles {
		if !slices.Contains(percentiles, p) {
			percentiles = append(percentiles, p)
		}
	}
	row := func(name, unit string, m result.Metric) {
		unit = "(" + unit + ")"
		cells := []string{name + " " + unit}
		for _, v := range columnValues(m, percentiles) {
			cells = append(cells, grouped(v))
		}
		rows = append(rows, cells)
		if len(name) > longName {
			cells[0] = name
			rows = append(rows, append([]string{unit}, make([]string, len(cells)-1)...))
		}
	}
	for _, q := range result.Tabled {
		if m, ok := f.Metric(q.Tag()); ok || !s.Streamed && q.Streamed() { // without streaming it is not available
			row(q.Title(), string(q.Unit()), m)
		}
	}
	for _, tag := range consoleTags {
		if m, ok := f.Metric(tag); ok {
			row(m.Name, m.Unit, m)
		}
	}
	return append([]string{"Metric"}, columnNames(percentiles)...), rows
}

// writeBox draws a table. All columns are aligned to the right. While the box is wider than width, the next of the spare columns is left
// out; a width of 0 is unlimited.
func writeBox(out *strings.Builder, title string, columns []string, rows [][]string, width int, spare ...string) {
	cells, widths := terminal.Narrow(append([][]string{columns}, rows...), spare, width, boxWidth)
	columns, rows = cells[0], cells[1:]
	edge := func(left, fill, between, right string) string {
		parts := make([]string, len(widths))
		for i, n := range widths {
			parts[i] = strings.Repeat(fill, n+2)
		}
		return left + strings.Join(parts, between) + right
	}
	row := func(bar string, cells []string) {
		for i, c := range cells {
			fmt.Fprintf(out, "%s %s%s ", bar, strings.Repeat(" ", widths[i]-terminal.Width(c)), c)
		}
		fmt.Fprintln(out, bar)
	}
	top := edge("┏", "━", "┳", "┓")
	fmt.Fprintln(out, strings.Repeat(" ", max(0, terminal.Width(top)-terminal.Width(title))/2)+title)
	fmt.Fprintln(out, top)
	row("┃", columns)
	fmt.Fprintln(out, edge("┡", "━", "╇", "┩"))
	for _, cells := range rows {
		row("│", cells)
	}
	fmt.Fprintln(out, edge("└", "─", "┴", "┘"))
}

// boxWidth is the width of a box with its edges and its margins.
func boxWidth(columns []int) int {
	sum := 1
	for _, n := range columns {
		sum += n + 3
	}
	return sum
}
