package analysis

import (
	"bufio"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"replayd/internal/number"
)

// tables writes paragraphs. Errors stay in the writer, which returns them from Flush.
type tables struct{ *bufio.Writer }

func (t tables) line(format string, values ...any) { _, _ = fmt.Fprintf(t, format+"\n", values...) }

func (t tables) heading(text string) {
	t.line("\n%s\n%s", text, strings.Repeat("-", utf8.RuneCountInString(text)))
}

// grid writes columns, the first one and bars to the left, the others to the right.
func (t tables) grid(rows ...[]string) { t.columns(rows, true) }

// left writes names, and texts beside them.
func (t tables) left(rows ...[]string) { t.columns(rows, false) }

func (t tables) columns(rows [][]string, right bool) {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
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

// bar is one character for every two percent, and a thin one for what is less than half of that.
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
