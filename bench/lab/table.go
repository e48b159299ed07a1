package lab

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// A Table is a Markdown table, with columns as wide as their widest cell.
type Table struct {
	Title string   // a sentence over it
	Head  []string // of each column
	Rows  [][]string
	Notes []string // sentences under it
}

// Add appends a row.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

// Note appends a sentence.
func (t *Table) Note(format string, args ...any) {
	t.Notes = append(t.Notes, fmt.Sprintf(format, args...))
}

func (t *Table) String() string {
	widths := make([]int, len(t.Head))
	for _, row := range append([][]string{t.Head}, t.Rows...) {
		for i, cell := range row[:min(len(row), len(widths))] {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell), 3)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", t.Title)
	line := func(row []string) {
		for i, w := range widths {
			cell := ""
			if i < len(row) {
				cell = row[i]
			}
			fmt.Fprintf(&b, "| %s%s ", cell, strings.Repeat(" ", w-utf8.RuneCountInString(cell)))
		}
		b.WriteString("|\n")
	}
	line(t.Head)
	for _, w := range widths {
		fmt.Fprintf(&b, "|%s", strings.Repeat("-", w+2))
	}
	b.WriteString("|\n")
	for _, row := range t.Rows {
		line(row)
	}
	for _, n := range t.Notes {
		fmt.Fprintf(&b, "\n%s\n", n)
	}
	return b.String()
}

// WriteResults writes dir/name.md: the machine, the date and the steal of the measurement, then the tables.
func WriteResults(dir, name string, steal *Steal, tables ...*Table) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s  \n%s  \nsteal in the run: %.2f s, %.1f %% of a core\n", name, Machine(), Today(), steal.Total().Seconds(), 100*steal.Share())
	for _, t := range tables {
		fmt.Fprintf(&b, "\n%s", t)
	}
	path := filepath.Join(dir, name+".md")
	if err := os.WriteFile(path+".new", []byte(b.String()), 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// Number formats a figure with three significant digits, and NaN as "–".
func Number(v float64) string {
	switch a := math.Abs(v); {
	case math.IsNaN(v):
		return "–"
	case a >= 100 || a == 0:
		return fmt.Sprintf("%.0f", v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	case a >= 1:
		return fmt.Sprintf("%.2f", v)
	default:
		return fmt.Sprintf("%.3g", v)
	}
}
