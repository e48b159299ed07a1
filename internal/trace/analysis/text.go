package analysis

import (
	"bufio"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"replayd/internal/number"
	"replayd/internal/terminal"
)

// tables writes headings, lines and columns. A write error stays in the bufio.Writer, which returns it from Flush.
type tables struct {
	*bufio.Writer
	width int // of a line; 0: no limit
}

func (t tables) line(format string, values ...any) { _, _ = fmt.Fprintf(t, format+"\n", values...) }

func (t tables) heading(text string) {
	t.line("\n%s\n%s", text, strings.Repeat("-", utf8.RuneCountInString(text)))
}

// grid writes columns. The first column and bars are left-aligned, all others right-aligned.
func (t tables) grid(rows ...[]string) { t.columns(rows, true) }

// left writes left-aligned columns.
func (t tables) left(rows ...[]string) { t.columns(rows, false) }

// spare lists the columns that a table without room for them leaves out, in order. The JSON has them.
var spare = []string{"std dev", "p25", "p75", "p90"}

func (t tables) columns(rows [][]string, right bool) {
	rows, widths := terminal.Narrow(rows, spare, t.width, terminal.RowWidth)
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i > 0 {
				line.WriteString("  ")
			}
			if right && i > 0 && !strings.HasPrefix(cell, full) && cell != some {
				line.WriteString(pad + cell)
			} else {
				line.WriteString(cell + pad)
			}
		}
		t.line("%s", strings.TrimRight(line.String(), " "))
	}
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

func known(v float64, digits int, count int64) string {
	if count == 0 {
		return "n/a"
	}
	return number.Grouped(v, digits)
}

func minutes(d time.Duration) string {
	return strings.TrimSuffix(number.Grouped(d.Minutes(), 1), ".0")
}

func seconds(v float64) string {
	return number.Places(v, 6) + " s"
}
