package terminal

import (
	"fmt"
	"slices"
	"strings"
)

// A Table is a text in lines of at most so many columns; 0: of any length.
type Table struct {
	strings.Builder
	Columns int
}

// Rows writes rows of cells under their headings, the first row. All columns but the first are aligned to the right.
// While a row is wider than the table, the next of the spare columns is left out.
func (t *Table) Rows(rows [][]string, spare []string) {
	t.Aligned(rows, spare, func(column int, _ string) bool { return column == 0 })
}

// Aligned is Rows for a table that has other cells aligned to the left.
func (t *Table) Aligned(rows [][]string, spare []string, left func(column int, cell string) bool) {
	rows, widths := Narrow(rows, spare, t.Columns, rowWidth)
	for _, cells := range rows {
		line := ""
		for i, cell := range cells {
			pad := strings.Repeat(" ", widths[i]-Width(cell))
			if left(i, cell) {
				line += cell + pad + "  "
			} else {
				line += pad + cell + "  "
			}
		}
		fmt.Fprintln(t, strings.TrimRight(line, " "))
	}
}

// Narrow leaves out spare columns, named by the first row, in their order, while a row is wider than columns (0: no
// limit). width returns the width of a row with columns of the given widths. Narrow returns the rows and the widths of
// their columns. Rows may have different lengths. The given rows stay as they are.
func Narrow(rows [][]string, spare []string, columns int, width func(widths []int) int) (narrow [][]string, widths []int) {
	narrow, widths = rows, widthsOf(rows)
	for _, name := range spare {
		if columns <= 0 || width(widths) <= columns {
			break
		}
		at := slices.Index(narrow[0], name)
		if at < 0 {
			continue
		}
		rest := make([][]string, len(narrow))
		for i, cells := range narrow {
			rest[i] = slices.Delete(slices.Clone(cells), at, at+1)
		}
		narrow, widths = rest, widthsOf(rest)
	}
	return narrow, widths
}

// rowWidth returns the width of a row with two spaces between its columns.
func rowWidth(widths []int) int {
	sum := -2
	for _, w := range widths {
		sum += w + 2
	}
	return sum
}

func widthsOf(rows [][]string) []int {
	var widths []int
	for _, cells := range rows {
		for i, cell := range cells {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], Width(cell))
		}
	}
	return widths
}

// Line writes a name and its text.
func (t *Table) Line(name, format string, values ...any) {
	const column = 24 // longer than the names of outcomes and drops
	if Width(name) >= column {
		fmt.Fprintln(t, name)
		name = ""
	}
	t.Wrapped(fmt.Sprintf("%-*s", column, name), fmt.Sprintf(format, values...), column)
}

// Wrapped writes a text after its head. A text that is too wide goes on in further lines, indented to the column.
func (t *Table) Wrapped(head, text string, column int) {
	t.WriteString(breakLine(head+text, t.Columns, column))
}

// Fit breaks the lines of a text that are longer than columns; 0: no limit. A broken line continues below its second
// column, which begins after two spaces.
func Fit(text string, columns int) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		indent := 2
		if head, rest, ok := strings.Cut(line, "  "); ok {
			indent = Width(head) + 2 + Width(rest) - Width(strings.TrimLeft(rest, " "))
		}
		out.WriteString(breakLine(line, columns, indent))
	}
	return out.String()
}

// breakLine breaks a line that is longer than columns (0: no limit) at spaces. The further lines are indented. A word that
// is too long for a line is broken too. An indent of more than half a line is cut to two spaces.
func breakLine(line string, columns, indent int) string {
	if indent > columns/2 {
		indent = min(2, columns/2)
	}
	var out strings.Builder
	for columns > 0 && Width(line) > columns {
		letters := []rune(line)
		first := columns
		for first > indent && letters[first] != ' ' {
			first--
		}
		if first <= indent {
			first = columns
		}
		out.WriteString(string(letters[:first]) + "\n")
		line = strings.Repeat(" ", indent) + strings.TrimLeft(string(letters[first:]), " ")
	}
	return out.String() + line + "\n"
}
