package terminal

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Visible returns a writer of text for people. It escapes all that could control a terminal: control characters but line ends and tabs, bidi controls
// and invalid UTF-8. Names of files and values of a configuration are in errors, tables and results, and may have any bytes.
func Visible(out io.Writer) io.Writer { return &visible{out: out} }

type visible struct {
	out  io.Writer
	part []byte // of a character that the next Write completes
}

func (v *visible) Write(p []byte) (int, error) {
	text := string(append(v.part, p...))
	v.part = v.part[:0]
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if end := text[len(text)-n:]; utf8.RuneStart(end[0]) {
			if !utf8.FullRuneInString(end) {
				v.part, text = append(v.part, end...), text[:len(text)-n]
			}
			break
		}
	}
	if _, err := io.WriteString(v.out, escaped(text)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// escaped returns a text without what Visible escapes.
func escaped(text string) string {
	if utf8.ValidString(text) && !strings.ContainsFunc(text, controls) {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case controls(r):
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		default:
			b.WriteString(text[:n])
		}
		text = text[n:]
	}
	return b.String()
}

func controls(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsGraphic(r) }

// Name returns the name of a file as a word of a line: in quotes if it has line ends or other characters that are not printable.
func Name(path string) string {
	if utf8.ValidString(path) && !strings.ContainsFunc(path, func(r rune) bool { return !unicode.IsGraphic(r) }) {
		return path
	}
	return strconv.Quote(path)
}
