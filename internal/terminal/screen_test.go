package terminal

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestScreen(t *testing.T) {
	s, y := terminal(t, 20)
	expect := func(row, col int, want ...string) {
		t.Helper()
		if got := y.String(); got != strings.Join(append(want, ""), "\n") || y.row != row || y.col != col {
			t.Errorf("want cursor %d, %d and\n%s\ngot %d, %d and\n%s", row, col, strings.Join(want, "\n"), y.row, y.col, got)
		}
	}
	s.Draw()
	s.End() // nothing is drawn
	expect(0, 0)
	fmt.Fprintln(s, "log 1")
	s.Draw("first", "second, a longer one")
	expect(1, 0, "log 1", "first", "second, a longer one")
	s.Draw("1st", "2nd")
	expect(1, 0, "log 1", "1st", "2nd")
	fmt.Fprint(s, "log 2\nlog 3\n") // appears above
	expect(3, 0, "log 1", "log 2", "log 3", "1st", "2nd")
	s.Draw("one line")
	expect(3, 0, "log 1", "log 2", "log 3", "one line")
	s.Draw("one", "two")
	s.End()
	fmt.Fprintln(s, "report")
	expect(6, 0, "log 1", "log 2", "log 3", "one", "two", "report", "")
	s.Draw("waiting")
	s.Draw() // erases the lines
	expect(6, 0, "log 1", "log 2", "log 3", "one", "two", "report", "")

	// The terminal has just become narrower, so the line is cut.
	s.Draw(strings.Repeat("x", 25), "last")
	expect(6, 0, "log 1", "log 2", "log 3", "one", "two", "report", strings.Repeat("x", 20), "last")
	if y.overflows != 5 || y.wrapped != 0 || !y.wraps {
		t.Errorf("want 5 characters cut and wrapping on again, got %d, %v", y.overflows, y.wraps)
	}
}

// For any order of calls, written text stands above in that order and undamaged, and no earlier drawing remains.
func TestScreenProperty(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		s, y := terminal(t, 30)
		var written, drawn []string
		for range random.IntN(30) {
			switch random.IntN(4) {
			case 0:
				line := fmt.Sprint("log ", random.IntN(1000), strings.Repeat(".", random.IntN(20)))
				fmt.Fprintln(s, line)
				written = append(written, line)
			case 1:
				s.End()
				written, drawn = append(written, drawn...), nil
			default:
				drawn = nil
				for range random.IntN(3) {
					drawn = append(drawn, fmt.Sprint("bar ", random.IntN(1000), strings.Repeat("=", random.IntN(20))))
				}
				s.Draw(drawn...)
			}
			want := strings.Join(append(written, drawn...), "\n")
			if got := strings.TrimRight(y.String(), "\n"); got != want {
				t.Fatalf("want\n%s\ngot\n%s", want, got)
			}
		}
	}
}

// Without a terminal nothing is drawn, and written text is unchanged.
func TestNoTerminal(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if NewScreen(null, null, "xterm").Terminal() {
		t.Error(os.DevNull, "is no terminal")
	}
	path := filepath.Join(t.TempDir(), "out")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := NewScreen(f, f, "xterm")
	if s.Terminal() {
		t.Error("a file is no terminal")
	}
	s.Draw("a line")
	s.End()
	if _, err := io.WriteString(s, "text"); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); string(got) != "text" || err != nil {
		t.Errorf("want only what was written, got %q, %v", got, err)
	}
}

type broken struct{}

var errBroken = errors.New("broken")

func (broken) Write([]byte) (int, error) { return 0, errBroken }

func TestScreenError(t *testing.T) {
	s := &Screen{out: broken{}, width: func() int { return 80 }, height: func() int { return 1000 }}
	s.Draw("a line")
	if _, err := s.Write([]byte("log\n")); !errors.Is(err, errBroken) {
		t.Errorf("want %v, got %v", errBroken, err)
	}
}
