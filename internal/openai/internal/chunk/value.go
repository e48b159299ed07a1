package chunk

import (
	"bytes"
	"math"
	"strconv"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// A value is a JSON value as it stands in an answer, which a scanner has read; nil for none. It is a part of the answer's
// own bytes.
type value []byte

// some reports whether it brings anything: text that is not empty, or a list (token ids, content parts) or an object
// (arguments that were not put into a string) with something in it.
func (v value) some() bool {
	if len(v) <= len(`""`) {
		return false
	}
	switch v[0] {
	case '"':
		return true
	case '[', '{':
		w := scanner{b: v, i: 1}
		c := w.peek()
		return c != ']' && c != '}'
	}
	return false
}

// texts calls each for every string in v: v itself if it is a string, else the text of each content part.
func (v value) texts(each func(text value)) {
	switch {
	case len(v) == 0:
	case v[0] == '"':
		each(v)
	case v[0] == '[':
		w := scanner{b: v}
		w.array(func() bool {
			var text value
			ok := w.object(func(key []byte) (ok bool) {
				if string(key) != "text" {
					return w.skip()
				}
				text, ok = w.value()
				return ok
			})
			if text.some() && text[0] == '"' {
				each(text)
			}
			return ok
		})
	}
}

// says reports whether a text in it is not empty.
func (v value) says() (said bool) {
	if len(v) > 0 && v[0] == '"' {
		return v.some()
	}
	v.texts(func(text value) { said = said || text.some() })
	return said
}

// maxNumber bounds a number that is taken for a count, in bytes.
const maxNumber = 64

// count is a whole number of tokens, however it is written.
func (v value) count() (n int, ok bool) {
	if len(v) == 0 || len(v) > maxNumber || v[0] != '-' && (v[0] < '0' || v[0] > '9') {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(v), 64)
	if err != nil || f != math.Trunc(f) || f < 0 || f > MaxTokens {
		return 0, false
	}
	return int(f), true
}

// appendUnquoted appends what a JSON string says, given without its quotes, as encoding/json reads it: what is not UTF-8,
// and half of a surrogate pair, becomes U+FFFD. dst grows to at most most bytes; cut is that something was left out.
func appendUnquoted(dst, in []byte, most int) (_ []byte, cut bool) {
	if bytes.IndexByte(in, '\\') < 0 && utf8.Valid(in) {
		if room := most - len(dst); len(in) > room {
			for room > 0 && !utf8.RuneStart(in[room]) {
				room--
			}
			in, cut = in[:room], true
		}
		return append(dst, in...), cut
	}
	for len(in) > 0 {
		r, n := letter(in)
		if len(dst)+utf8.RuneLen(r) > most {
			return dst, true
		}
		dst = utf8.AppendRune(dst, r)
		in = in[n:]
	}
	return dst, false
}

// letter is the first letter that a JSON string says, and how many of its bytes say so.
func letter(in []byte) (r rune, n int) {
	if in[0] != '\\' {
		return utf8.DecodeRune(in)
	}
	switch c := in[1]; c {
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
		const long = len(`\u0000`)
		r = hex4(in[2:long])
		if !utf16.IsSurrogate(r) {
			return r, long
		}
		if len(in) >= 2*long && in[long] == '\\' && in[long+1] == 'u' {
			if both := utf16.DecodeRune(r, hex4(in[long+2:2*long])); both != unicode.ReplacementChar {
				return both, 2 * long
			}
		}
		return unicode.ReplacementChar, long
	default:
		return rune(c), 2
	}
}

func hex4(digits []byte) (r rune) {
	for _, c := range digits {
		d, _ := hexDigit(c) // a scanner has passed them
		r = r<<4 | d
	}
	return r
}

func hexDigit(c byte) (rune, bool) {
	switch {
	case '0' <= c && c <= '9':
		return rune(c - '0'), true
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return rune(c|0x20-'a') + 10, true
	}
	return 0, false
}
