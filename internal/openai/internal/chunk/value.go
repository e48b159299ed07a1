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

// is reports whether the value is a string that spells a short word.
func (v value) is(word string) bool {
	if len(v) == 0 || v[0] != '"' {
		return false
	}
	var room [16]byte
	said, cut := appendUnquoted(room[:0], v[1:len(v)-1], len(room))
	return !cut && string(said) == word
}

// texts calls each for every text of v: v itself if it is a string, else the members of each entry with these keys, a
// text or a list of its own.
func (v value) texts(each func(text value), keys ...string) {
	switch {
	case len(v) == 0:
	case v[0] == '"':
		each(v)
	default:
		v.entries(func(entry value) {
			if entry[0] == '"' {
				each(entry)
			}
			entry.members(func(_ string, said value) { said.texts(each, keys...) }, keys...)
		})
	}
}

func (v value) entries(each func(entry value)) {
	if len(v) == 0 || v[0] != '[' {
		return
	}
	w := scanner{b: v}
	w.array(func() bool {
		entry, ok := w.value()
		each(entry)
		return ok
	})
}

// has reports whether one of these members of an object has content.
func (v value) has(keys ...string) (has bool) {
	v.members(func(_ string, member value) { has = has || member.some() }, keys...)
	return has
}

// content reports which kinds of content there are in the content of a delta or message: a text, or a list of parts.
func (v value) content() (text, thought bool) {
	if len(v) == 0 || v[0] != '[' {
		return v.some(), false
	}
	v.entries(func(entry value) {
		if entry[0] != '{' {
			text = text || entry.some()
			return
		}
		var of value
		known := false
		entry.members(func(key string, member value) {
			switch key {
			case "type":
				of = member
				return
			case "thinking":
				thought = thought || member.says("text")
			default:
				text = text || member.some()
			}
			known = known || string(member) != "null"
		}, "type", "text", "refusal", "thinking")
		other := len(of) > len(`""`) && of[0] == '"' && !of.is("text") && !of.is("refusal") && !of.is("thinking")
		text = text || !known && other
	})
	return text, thought
}

// thinking calls each with the thoughts of every part of a content that is of type thinking.
func (v value) thinking(each func(thought value)) {
	v.entries(func(entry value) {
		entry.members(func(_ string, said value) { each(said) }, "thinking")
	})
}

// members calls each for those members of an object that have these keys, in their order; of equal ones for the last.
func (v value) members(each func(key string, member value), keys ...string) {
	if len(v) == 0 || v[0] != '{' {
		return
	}
	w := scanner{b: v}
	var found [4]value
	w.object(func(key []byte) bool {
		v, ok := w.value()
		for i, k := range keys {
			if k == string(key) {
				found[i] = v
			}
		}
		return ok
	})
	for i, k := range keys {
		if len(found[i]) > 0 {
			each(k, found[i])
		}
	}
}

// says reports whether one of the value's texts is not empty.
func (v value) says(keys ...string) (said bool) {
	v.texts(func(text value) { said = said || text.some() }, keys...)
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
	if i := bytes.IndexByte([]byte("bfnrt"), in[1]); i >= 0 {
		return rune("\b\f\n\r\t"[i]), 2
	}
	if in[1] != 'u' {
		return rune(in[1]), 2
	}
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
}

func hex4(digits []byte) rune {
	n, _ := strconv.ParseUint(string(digits), 16, 16) // the scanner has validated the digits
	return rune(n)
}
