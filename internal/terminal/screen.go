package terminal

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"
)

// A Screen is an output that may be a terminal. On a terminal it keeps lines at the bottom and redraws them, while
// written text, such as a log, scrolls by above. Text is escaped as Visible does. It uses no colors. It is safe for
// concurrent use.
type Screen struct {
	out    io.Writer
	width  func() int // nil: it cannot draw
	height func() int // of a screen with a width

	mu    sync.Mutex
	drawn []string
}

// NewScreen returns the screen of a file; out writes to the file. It draws only on a terminal that knows control
// sequences. kind is the environment's TERM; "dumb" means that the terminal knows none.
func NewScreen(f *os.File, out io.Writer, kind string) *Screen {
	s := &Screen{out: out}
	if kind != "dumb" && Columns(f) > 0 {
		s.width = func() int { columns, _, _ := size(f); return columns }
		s.height = func() int { _, rows, _ := size(f); return rows }
	}
	return s
}

// Columns is the width of a file that is a terminal, and 0 of any other.
func Columns(f *os.File) int {
	columns, _, terminal := size(f)
	if !terminal {
		return 0
	}
	return columns
}

// size asks a terminal for its size, which is 80 columns and 24 rows if the terminal does not know it. Other files have
// none. File.Fd would make the file blocking, also for other processes that share it.
func size(f *os.File) (columns, rows int, terminal bool) {
	if c, err := f.SyscallConn(); err == nil {
		_ = c.Control(func(fd uintptr) { // it fails for a closed file
			columns, rows, err = term.GetSize(int(fd))
			terminal = err == nil
		})
	}
	return cmp.Or(columns, 80), cmp.Or(rows, 24), terminal
}

// Terminal says whether something can be drawn.
func (s *Screen) Terminal() bool { return s.width != nil }

// Width returns the current number of columns.
func (s *Screen) Width() int { return s.width() }

// Control sequences of a terminal (ECMA-48; 7 is DEC's autowrap). A line can be too long if the terminal has just
// become narrower. It is cut at the edge, because a wrapped line could not be overwritten.
const (
	noWrap    = "\x1b[?7l"
	wrap      = "\x1b[?7h"
	lineRest  = "\x1b[K"
	belowRest = "\x1b[J"
	up        = "\x1b[%dA"
)

// Write implements io.Writer for whole lines.
func (s *Screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := escaped(string(p))
	if len(s.drawn) > 0 {
		text = "\r" + belowRest + text + s.block()
	}
	if _, err := io.WriteString(s.out, text); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Draw replaces the lines at the bottom; without lines it only erases them. The cursor stays where they begin.
func (s *Screen) Draw(lines ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.width == nil || len(lines)+len(s.drawn) == 0 {
		return
	}
	lines = lines[:min(len(lines), s.height())] // the cursor cannot return to a line that has scrolled out
	old := ""
	if len(lines) < len(s.drawn) {
		old = "\r" + belowRest
	}
	s.drawn = lines
	_, _ = io.WriteString(s.out, old+s.block()) // there is nowhere to report the error
}

// End leaves the drawn lines in place. Later output goes below them.
func (s *Screen) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.drawn); n > 0 {
		_, _ = io.WriteString(s.out, strings.Repeat("\n", n))
	}
	s.drawn = nil
}

// block returns the drawn lines and the control sequence that returns to the first of them.
func (s *Screen) block() string {
	if len(s.drawn) == 0 {
		return ""
	}
	b := &strings.Builder{}
	for i, line := range s.drawn {
		if i > 0 {
			b.WriteString("\n")
		}
		b.WriteString("\r" + noWrap + escaped(line) + lineRest + wrap)
	}
	if n := len(s.drawn) - 1; n > 0 {
		fmt.Fprintf(b, up, n)
	}
	b.WriteString("\r")
	return b.String()
}
