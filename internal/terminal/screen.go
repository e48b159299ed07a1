package terminal

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
)

// A Screen is an output that may be a terminal. On one, lines can stand at its foot and be renewed there, while what is
// written, a log, scrolls by above them. Colours are not used. Its methods may be called at once.
type Screen struct {
	out   io.Writer
	width func() int // nil: nothing can be drawn there

	mu    sync.Mutex
	drawn []string
}

// NewScreen is the screen of a file, which out writes. Nothing is drawn where no person looks: elsewhere than on a terminal, and on
// one that knows no control sequences, which term, the environment's TERM, calls dumb.
func NewScreen(f *os.File, out io.Writer, term string) *Screen {
	s := &Screen{out: out}
	if term != "dumb" && isTerminal(f) {
		s.width = func() int { return columns(f) }
	}
	return s
}

// Columns is the width of a file that is a terminal, and 0 of any other.
func Columns(f *os.File) int {
	if !isTerminal(f) {
		return 0
	}
	return columns(f)
}

// Terminal says whether something can be drawn.
func (s *Screen) Terminal() bool { return s.width != nil }

// Width is how many columns there are now.
func (s *Screen) Width() int { return s.width() }

// Control sequences of a terminal (ECMA-48; 7 is DEC's autowrap). A line that is too long all the same, because the
// terminal has just become narrower, is cut at the edge: what was wrapped could not be written over.
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
	if len(s.drawn) == 0 {
		return s.out.Write(p)
	}
	var b bytes.Buffer
	b.WriteString("\r" + belowRest)
	b.Write(p)
	b.WriteString(s.block())
	if _, err := s.out.Write(b.Bytes()); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Draw shows lines at the foot, in the place of those that it showed before; without any they are only taken away. The
// cursor waits where they begin.
func (s *Screen) Draw(lines ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.width == nil || len(lines)+len(s.drawn) == 0 {
		return
	}
	old := ""
	if len(lines) < len(s.drawn) {
		old = "\r" + belowRest
	}
	s.drawn = lines
	_, _ = io.WriteString(s.out, old+s.block()) // the error has nowhere to go
}

// End lets what was drawn stand; what is written now comes below it.
func (s *Screen) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.drawn); n > 0 {
		_, _ = io.WriteString(s.out, strings.Repeat("\n", n))
	}
	s.drawn = nil
}

// block are the drawn lines with the way back to the first of them.
func (s *Screen) block() string {
	if len(s.drawn) == 0 {
		return ""
	}
	b := &strings.Builder{}
	for i, line := range s.drawn {
		if i > 0 {
			b.WriteString("\n")
		}
		b.WriteString("\r" + noWrap + line + lineRest + wrap)
	}
	if n := len(s.drawn) - 1; n > 0 {
		fmt.Fprintf(b, up, n)
	}
	b.WriteString("\r")
	return b.String()
}
