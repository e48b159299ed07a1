package terminal

import (
	"bytes"
	"errors"
	"testing"
	"unicode/utf8"
)

// Text for people has nothing that controls a terminal, however it is divided into writes.
func TestVisible(t *testing.T) {
	const given, want = "é\x1b[31m\a\r\x00\u202e\u0085\x7f\xffa\u00a0━\n\t\xe2\x82!\n", `é\x1b[31m\a\r\x00\u202e\u0085\x7f\xffa` + "\u00a0━\n\t" + `\xe2\x82!` + "\n"
	for size := 1; size <= len(given); size++ {
		var out bytes.Buffer
		w := Visible(&out)
		for rest := []byte(given); len(rest) > 0; {
			n, err := w.Write(rest[:min(size, len(rest))])
			if err != nil || n != min(size, len(rest)) {
				t.Fatal(n, err)
			}
			rest = rest[n:]
		}
		if out.String() != want {
			t.Errorf("%d bytes a write:\ngot  %q\nwant %q", size, &out, want)
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.ErrUnsupported }

func TestVisibleFails(t *testing.T) {
	if n, err := Visible(full{}).Write([]byte("a")); n != 0 || !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("got %d, %v", n, err)
	}
}

// A screen escapes what is written and drawn, and only its own control sequences reach the terminal.
func TestScreenEscapes(t *testing.T) {
	var out bytes.Buffer
	s := &Screen{out: &out, width: func() int { return 80 }, height: func() int { return 1000 }}
	s.Draw("bar\x1b[2J")
	_, _ = s.Write([]byte("log\x1b]0;title\a\n"))
	if bytes.Contains(out.Bytes(), []byte("\x1b[2J")) || bytes.Contains(out.Bytes(), []byte("\x1b]0")) || bytes.Contains(out.Bytes(), []byte("\a")) || !bytes.Contains(out.Bytes(), []byte(`\x1b]0;title\a`)) {
		t.Errorf("got %q", &out)
	}
}

func TestName(t *testing.T) {
	for name, want := range map[string]string{"a b/ü.jsonl": "a b/ü.jsonl", "a\nb": `"a\nb"`, "\x1b": `"\x1b"`, "\xff": `"\xff"`} {
		if got := Name(name); got != want {
			t.Errorf("want %s, got %s", want, got)
		}
	}
}

func FuzzVisible(f *testing.F) {
	f.Add("a\x1b\xff")
	f.Fuzz(func(t *testing.T, text string) {
		if got := escaped(text); !utf8.ValidString(got) || bytes.ContainsFunc([]byte(got), controls) || utf8.ValidString(text) && !bytes.ContainsFunc([]byte(text), controls) && got != text {
			t.Errorf("%q: got %q", text, got)
		}
	})
}
