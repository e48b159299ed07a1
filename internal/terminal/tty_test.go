package terminal

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// A tty emulates what a Screen uses of a terminal. Its number of rows is unlimited.
type tty struct {
	t       *testing.T
	columns int

	mu        sync.Mutex
	rows      [][]rune
	row, col  int
	wraps     bool
	wrapped   int // lines that wrapped
	overflows int // characters cut at the edge
}

func (y *tty) Write(p []byte) (int, error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	for s := string(p); s != ""; {
		if rest, ok := strings.CutPrefix(s, "\x1b["); ok {
			end := strings.IndexFunc(rest, func(r rune) bool { return r >= '@' && r <= '~' })
			y.control(rest[:end+1])
			s = rest[end+1:]
			continue
		}
		r := []rune(s)[0]
		y.put(r)
		s = s[len(string(r)):]
	}
	return len(p), nil
}

func (y *tty) control(sequence string) {
	switch n, _ := strconv.Atoi(sequence[:len(sequence)-1]); {
	case sequence == "?7l":
		y.wraps = false
	case sequence == "?7h":
		y.wraps = true
	case sequence == "K":
		y.here()
		y.rows[y.row] = y.rows[y.row][:min(y.col, len(y.rows[y.row]))]
	case sequence == "J":
		y.control("K")
		y.rows = y.rows[:y.row+1]
	case strings.HasSuffix(sequence, "A") && n > 0:
		if y.row -= n; y.row < 0 {
			y.t.Errorf("%d up: over the first line", n)
			y.row = 0
		}
	default:
		y.t.Errorf("unknown control sequence %q", sequence)
	}
}

func (y *tty) put(r rune) {
	switch r {
	case '\r':
		y.col = 0
		return
	case '\n': // as a terminal's driver does: with a carriage return
		y.row, y.col = y.row+1, 0
		y.here()
		return
	}
	if y.col == y.columns {
		if !y.wraps {
			y.overflows++
			return
		}
		y.wrapped++
		y.row, y.col = y.row+1, 0
	}
	y.here()
	line := y.rows[y.row]
	for len(line) <= y.col {
		line = append(line, ' ')
	}
	line[y.col] = r
	y.rows[y.row] = line
	y.col++
}

// here adds rows up to the cursor's.
func (y *tty) here() {
	for len(y.rows) <= y.row {
		y.rows = append(y.rows, nil)
	}
}

// String returns the text that a person sees.
func (y *tty) String() string {
	y.mu.Lock()
	defer y.mu.Unlock()
	b := &strings.Builder{}
	for _, r := range y.rows {
		fmt.Fprintln(b, string(r))
	}
	return b.String()
}

// terminal returns a screen on an emulated terminal.
func terminal(t *testing.T, columns int) (*Screen, *tty) {
	y := &tty{t: t, columns: columns, wraps: true}
	return &Screen{out: y, width: func() int { return y.columns }, height: func() int { return 1000 }}, y
}
