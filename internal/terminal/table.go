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

// Rows writes rows of cells under their headings, the first row. All columns but the first are aligned to the right. While a row is wider
// than the table, the next of the spare columns is left out.
func (t *Table) Rows(rows [][]string, spare []string) {
	for {
		widths := make([]int, len(rows[0]))
		sum := 0
		for i := range widths {
			for _, cells := range rows {
				widths[i] = max(widths[i], Width(cells[i]))
			}
			sum += 2 + widths[i]
		}
		if t.Columns <= 0 || sum-2 <= t.Columns || len(spare) == 0 {
			for _, cells := range rows {
				line := fmt.Sprintf("%-*s", widths[0], cells[0])
				for i, cell := range cells[1:] {
					line += fmt.Sprintf("  %*s", widths[i+1], cell)
				}
				fmt.Fprintln(t, line)
			}
			return
		}
		if at := slices.Index(rows[0], spare[0]); at >= 0 {
			for i, cells := range rows {
				rows[i] = slices.Delete(cells, at, at+1)
			}
		}
		spare = spare[1:]
	}
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
	line := head
	for i, word := range strings.Split(text, " ") {
		switch {
		case i == 0:
			line += word
		case t.Columns > 0 && Width(line)+1+Width(word) > t.Columns:
			fmt.Fprintln(t, line)
			line = strings.Repeat(" ", column) + word
		default:
			line += " " + word
		}
	}
	fmt.Fprintln(t, line)
}

// Fit breaks the lines of a text that are longer than columns; 0: no limit. A broken line continues below its second
// column, which begins after two spaces. A word that is too long for a line is broken too.
func Fit(text string, columns int) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if columns <= 0 || Width(line) <= columns {
			out.WriteString(line + "\n")
			continue
		}
		indent := 2
		if head, rest, ok := strings.Cut(line, "  "); ok {
			indent = Width(head) + 2 + Width(rest) - Width(strings.TrimLeft(rest, " "))
		}
		if indent > columns/2 {
			indent = 2
		}
		space := strings.Repeat(" ", indent)
		for Width(line) > columns {
			letters := []rune(line)
			at := strings.LastIndex(string(letters[indent:columns+1]), " ")
			if at <= 0 {
				out.WriteString(string(letters[:columns]) + "\n")
				line = space + string(letters[columns:])
				continue
			}
			first := string(letters[:indent]) + string(letters[indent : columns+1])[:at]
			out.WriteString(first + "\n")
			line = space + strings.TrimLeft(line[len(first):], " ")
		}
		out.WriteString(line + "\n")
	}
	return out.String()
}
