package analysis

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"replayd/internal/number"
	"replayd/internal/stats"
	"replayd/internal/terminal"
)

// tables is a text of headings, lines and columns.
type tables struct{ *terminal.Table }

func (t tables) line(format string, values ...any) { fmt.Fprintf(t, format+"\n", values...) }

func (t tables) heading(text string) {
	t.line("\n%s\n%s", text, strings.Repeat("-", terminal.Width(text)))
}

// spare lists the columns that a table without room for them leaves out, in order. The JSON has them.
var spare = []string{"std dev", "p25", "p75", "p90"}

// grid writes columns. The first column and bars are left-aligned, all others right-aligned.
func (t tables) grid(rows ...[]string) {
	t.Aligned(rows, spare, func(i int, cell string) bool { return i == 0 || strings.HasPrefix(cell, full) || cell == some })
}

func (t tables) left(rows ...[]string) {
	t.Aligned(rows, spare, func(int, string) bool { return true })
}

// A named distribution is a row of a table.
type named struct {
	name string
	stats.Summary
}

// distributions writes the figures that the header names, of each distribution.
func (t tables) distributions(digits int, header []string, all ...named) {
	rows := [][]string{append([]string{""}, header...)}
	for _, d := range all {
		known := func(v float64) string {
			if d.Count == 0 {
				return "n/a"
			}
			return number.Grouped(v, digits)
		}
		figures := map[string]string{
			"mean": known(d.Mean), "std dev": known(d.StdDev), "min": known(d.Min), "max": known(d.Max),
			"p25": known(d.P25), "p50": known(d.P50), "median": known(d.P50), "p75": known(d.P75), "p90": known(d.P90),
			"p99": known(d.P99), "sum": number.Whole(d.Sum), "requests": number.Whole(d.Count),
		}
		row := []string{d.name}
		for _, name := range header {
			row = append(row, figures[name])
		}
		rows = append(rows, row)
	}
	t.grid(rows...)
}

const full, some = "█", "▏"

// bar returns one character for every two percent, or a thin one if a share above 0 rounds to none.
func bar(share float64) string {
	n := int(share*50 + 0.5)
	if n == 0 && share > 0 {
		return some
	}
	return strings.Repeat(full, n)
}

func percent(part float64, digits int) string {
	return strconv.FormatFloat(100*part, 'f', digits, 64) + "%"
}

func minutes(d time.Duration) string {
	return strings.TrimSuffix(number.Grouped(d.Minutes(), 1), ".0")
}

func seconds(v float64) string {
	return number.Places(v, 6) + " s"
}
