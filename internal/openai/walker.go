package openai

import "bytes"

// A walker reads JSON from left to right. Each of its methods reads one value and reports whether it is sure of
// what it read; once one is not, the walk is over. It takes nothing that encoding/json refuses.
type walker struct {
	b     []byte
	i     int
	depth int
}

// deepest nesting that is walked; chunks have about 6.
const deepest = 32

func (w *walker) space() {
	for w.i < len(w.b) && (w.b[w.i] == ' ' || w.b[w.i] == '\n' || w.b[w.i] == '\t' || w.b[w.i] == '\r') {
		w.i++
	}
}

// peek is the next byte after white space; 0 at the end.
func (w *walker) peek() byte {
	w.space()
	if w.i < len(w.b) {
		return w.b[w.i]
	}
	return 0
}

func (w *walker) take(c byte) bool {
	if w.peek() != c || c == 0 {
		return false
	}
	w.i++
	return true
}

func (w *walker) literal(s string) bool {
	w.space()
	if len(w.b)-w.i < len(s) || string(w.b[w.i:w.i+len(s)]) != s {
		return false
	}
	w.i += len(s)
	return true
}

// null takes a null, and nothing else.
func (w *walker) null() bool { return w.peek() == 'n' && w.literal("null") }

// object calls member for each key, to read its value. Keys with escapes are left to decode.
func (w *walker) object(member func(key []byte) bool) bool {
	if w.depth++; w.depth > deepest || !w.take('{') {
		return false
	}
	if !w.take('}') {
		for {
			w.space()
			key, plain, ok := w.quoted()
			if !ok || !plain || !w.take(':') || !member(key) {
				return false
			}
			if w.take('}') {
				break
			}
			if !w.take(',') {
				return false
			}
		}
	}
	w.depth--
	return true
}

// array calls element for each value, to read it.
func (w *walker) array(element func() bool) bool {
	if w.depth++; w.depth > deepest || !w.take('[') {
		return false
	}
	if !w.take(']') {
		for {
			if !element() {
				return false
			}
			if w.take(']') {
				break
			}
			if !w.take(',') {
				return false
			}
		}
	}
	w.depth--
	return true
}

// ordinary bytes of a string: all but the quote, the backslash and control characters.
var ordinary = func() (t [256]bool) {
	for c := range t {
		t[c] = c >= ' ' && c != '"' && c != '\\'
	}
	return t
}()

// quoted reads a string that begins here; plain says that it holds no escapes, so that raw is its value
// (up to bytes that are not UTF-8).
func (w *walker) quoted() (raw []byte, plain, ok bool) {
	b, i := w.b, w.i
	if i >= len(b) || b[i] != '"' {
		return nil, false, false
	}
	i++
	start := i
	plain = true
	for {
		for i < len(b) && ordinary[b[i]] {
			i++
		}
		if i >= len(b) {
			return nil, false, false
		}
		switch b[i] {
		case '"':
			w.i = i + 1
			return b[start:i], plain, true
		case '\\':
			plain = false
			n := escape(b[i:])
			if n == 0 {
				return nil, false, false
			}
			i += n
		default:
			return nil, false, false
		}
	}
}

// escape is the length of the escape sequence at the front of b; 0 when it is none.
func escape(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	if b[1] != 'u' {
		if bytes.IndexByte([]byte(`"\/bfnrt`), b[1]) < 0 {
			return 0
		}
		return 2
	}
	if len(b) < 6 {
		return 0
	}
	for _, c := range b[2:6] {
		if _, ok := unhex(c); !ok {
			return 0
		}
	}
	return 6
}

// text reads a string, as it stands there with its quotes, or null.
func (w *walker) text() (t text, ok bool) {
	if w.null() {
		return nil, true
	}
	start := w.i
	_, _, ok = w.quoted()
	return w.b[start:w.i], ok
}

// word reads a string of plain ASCII, or null.
func (w *walker) word() (word []byte, ok bool) {
	if w.null() {
		return nil, true
	}
	raw, plain, ok := w.quoted()
	for _, c := range raw {
		plain = plain && c < 0x80
	}
	return raw, ok && plain
}

// list reads an array or null and reports whether it holds anything.
func (w *walker) list() (some, ok bool) {
	if w.null() {
		return false, true
	}
	ok = w.array(func() bool {
		some = true
		return w.skip()
	})
	return some, ok
}

// count reads a number of tokens of up to nine digits, or null, for which given is false.
func (w *walker) count() (n int, given, ok bool) {
	if w.null() {
		return 0, false, true
	}
	start := w.i
	for w.i < len(w.b) && '0' <= w.b[w.i] && w.b[w.i] <= '9' && w.i-start < 10 {
		n = n*10 + int(w.b[w.i]-'0')
		w.i++
	}
	digits := w.i - start
	if digits == 0 || digits > 9 || digits > 1 && w.b[start] == '0' {
		return 0, false, false
	}
	switch w.peek() {
	case ',', '}', ']':
		return n, true, true
	}
	return 0, false, false // a fraction, an exponent
}

// skip reads any value.
func (w *walker) skip() bool {
	switch w.peek() {
	case '"':
		_, _, ok := w.quoted()
		return ok
	case '{':
		return w.object(func([]byte) bool { return w.skip() })
	case '[':
		return w.array(w.skip)
	case 't':
		return w.literal("true")
	case 'f':
		return w.literal("false")
	case 'n':
		return w.literal("null")
	}
	return w.number()
}

// number reads a number by JSON's grammar (RFC 8259, section 6).
func (w *walker) number() bool {
	if w.at('-') {
		w.i++
	}
	if w.at('0') {
		w.i++
	} else if !w.digits() {
		return false
	}
	if w.at('.') {
		w.i++
		if !w.digits() {
			return false
		}
	}
	if w.at('e') || w.at('E') {
		w.i++
		if w.at('+') || w.at('-') {
			w.i++
		}
		return w.digits()
	}
	return true
}

func (w *walker) at(c byte) bool { return w.i < len(w.b) && w.b[w.i] == c }

func (w *walker) digits() bool {
	start := w.i
	for w.i < len(w.b) && '0' <= w.b[w.i] && w.b[w.i] <= '9' {
		w.i++
	}
	return w.i > start
}
