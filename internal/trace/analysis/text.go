package analysis

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"replayd/internal/number"
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

// left writes left-aligned columns.
func (t tables) left(rows ...[]string) {
	t.Aligned(rows, spare, func(int, string) bool { return true })
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
