package chunk

import (
	"bytes"
	"math"
	"strconv"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// A value is the bytes of a JSON value that a scanner has validated; nil for none. It is a sub-slice of the answer.
type value []byte

// some reports whether the value has content: a string, a list (token ids, content parts) or an object (arguments that are
// not a string) that is not empty.
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

// texts calls each for every text of v: v itself if it is a string, else the text of each content part.
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

// says reports whether one of the value's texts is not empty.
func (v value) says() (said bool) {
	if len(v) > 0 && v[0] == '"' {
		return v.some()
	}
	v.texts(func(text value) { said = said || text.some() })
	return said
}

// maxNumber bounds a number that is parsed as a count, in bytes.
const maxNumber = 64

// count returns a whole number of tokens in any notation.
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

// appendUnquoted appends the decoded JSON string raw, which has no quotes. Like encoding/json, it replaces invalid UTF-8
// and lone surrogates by U+FFFD. dst grows to at most most bytes. cut reports that text was left out.
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

// letter returns the first decoded character of a JSON string, and the number of bytes that encode it.
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
		d, _ := hexDigit(c) // the scanner has validated the digits
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
