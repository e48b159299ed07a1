package chunk

import "bytes"

// A scanner parses JSON from left to right. It stores nothing, so its memory does not grow with the input. Each method
// parses one value and reports whether the value is valid JSON; after an invalid value the scan is over. A scanner
// accepts what encoding/json accepts, up to a nesting depth of deepest, and the numbers that Python's json.dumps writes
// although JSON has none: NaN, Infinity and -Infinity. If a scan fails at the end of b, b is truncated there.
type scanner struct {
	b     []byte
	i     int
	depth int
	stop  func() bool // ends the scan if it returns true; may be nil
	asked int         // position at the last call of stop
}

const (
	deepest  = 128       // nesting of objects and arrays; chunks have about 6 levels
	askEvery = 256 << 10 // bytes
)

// stopped calls stop from time to time.
func (w *scanner) stopped() bool {
	if w.i-w.asked < askEvery {
		return false
	}
	w.asked = w.i
	return w.stop()
}

func (w *scanner) space() {
	for w.i < len(w.b) && w.b[w.i] <= ' ' && // most bytes are not
		(w.b[w.i] == ' ' || w.b[w.i] == '\n' || w.b[w.i] == '\t' || w.b[w.i] == '\r') {
		w.i++
	}
}

// peek returns the next byte after white space; 0 at the end.
func (w *scanner) peek() byte {
	w.space()
	if w.i < len(w.b) {
		return w.b[w.i]
	}
	return 0
}

func (w *scanner) literal(s string) bool {
	w.space()
	if rest := w.b[w.i:]; len(rest) < len(s) {
		if s[:len(rest)] == string(rest) {
			w.i = len(w.b) // the input is truncated
		}
		return false
	}
	if string(w.b[w.i:w.i+len(s)]) != s {
		return false
	}
	w.i += len(s)
	return true
}

// object calls member with each key of an object. member parses the value. A value that is not an object is skipped.
func (w *scanner) object(member func(key []byte) bool) bool {
	if w.peek() != '{' {
		return w.skip()
	}
	if w.depth++; w.depth > deepest {
		return false
	}
	w.i++
	c := w.peek()
	for c != '}' {
		w.space()
		key, plain, ok := w.quoted()
		if !ok || w.peek() != ':' {
			return false
		}
		w.i++
		if !plain {
			key = known(key)
		}
		if !member(key) || w.stop != nil && w.stopped() {
			return false
		}
		if c = w.peek(); c != '}' && c != ',' {
			return false
		}
		if c == ',' {
			w.i++
		}
	}
	w.i++
	w.depth--
	return true
}

// nameBefore returns the position of the name of a member whose value begins at i.
func (w *scanner) nameBefore(i int) int {
	end := bytes.LastIndexByte(w.b[:i], ':')
	end = bytes.LastIndexByte(w.b[:end], '"')
	for {
		end = bytes.LastIndexByte(w.b[:end], '"')
		escapes := 0
		for w.b[end-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return end
		}
	}
}

// names are the names of members that the callers look for, and those that are ignored.
var names = func() (all [][]byte) {
	all = bytes.Fields([]byte(wanted))
	for name := range ignored {
		all = append(all, []byte(name))
	}
	return all
}()

const wanted = `
	arguments audio cache_n cache_read_input_tokens cached_tokens choices completion_tokens
	completion_tokens_details content custom data delta detail error error_code error_msg errors finish_reason
	function function_call id index input input_tokens input_tokens_details message msg name object
	output_tokens output_tokens_details owned_by parent predicted_n prompt_cache_hit_tokens prompt_n
	prompt_tokens prompt_tokens_details reasoning reasoning_content reasoning_details reasoning_text
	reasoning_tokens refusal summary text thinking thinking_blocks timings token_ids tool_calls total_tokens
	transcript type usage
`

// known returns the entry of names that a key with escapes spells, or nil. It does not allocate.
func known(key []byte) []byte {
	var said [32]byte
	name, cut := appendUnquoted(said[:0], key, len(said))
	for _, n := range names {
		if !cut && string(n) == string(name) {
			return n
		}
	}
	return nil
}

// array calls element for each value of an array. element parses the value. A value that is not an array is skipped.
func (w *scanner) array(element func() bool) bool {
	if w.peek() != '[' {
		return w.skip()
	}
	if w.depth++; w.depth > deepest {
		return false
	}
	w.i++
	c := w.peek()
	for c != ']' {
		if !element() || w.stop != nil && w.stopped() {
			return false
		}
		if c = w.peek(); c != ']' && c != ',' {
			return false
		}
		if c == ',' {
			w.i++
		}
	}
	w.i++
	w.depth--
	return true
}

// ordinary bytes of a string: all except quote, backslash and control characters.
var ordinary = func() (t [256]bool) {
	for c := range t {
		t[c] = c >= ' ' && c != '"' && c != '\\'
	}
	return t
}()

// quoted parses a string. plain is true if the string has no escapes: then raw is its value, except for bytes that are not
// UTF-8.
func (w *scanner) quoted() (raw []byte, plain, ok bool) {
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
			w.i = len(b)
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

// escape returns the length of the escape sequence at the front of b; 0 if it is invalid. The length of a truncated
// sequence is larger than len(b).
func escape(b []byte) int {
	const short, long = len(`\n`), len(`\u0000`)
	if len(b) < short {
		return short
	}
	if b[1] != 'u' {
		if bytes.IndexByte([]byte(`"\/bfnrt`), b[1]) < 0 {
			return 0
		}
		return short
	}
	for _, c := range b[short:min(len(b), long)] {
		if bytes.IndexByte([]byte("0123456789abcdefABCDEF"), c) < 0 {
			return 0
		}
	}
	return long
}

// value parses any value and returns its bytes.
func (w *scanner) value() (v value, ok bool) {
	c := w.peek()
	start := w.i
	if c == '"' {
		_, _, ok = w.quoted()
	} else {
		ok = w.skip()
	}
	return w.b[start:w.i], ok
}

// count parses a token count. Other values are skipped, and given is false.
func (w *scanner) count() (n int, given, ok bool) {
	w.space()
	start := w.i
	for w.i < len(w.b) && '0' <= w.b[w.i] && w.b[w.i] <= '9' && w.i-start < 10 {
		n = n*10 + int(w.b[w.i]-'0')
		w.i++
	}
	digits := w.i - start
	if digits > 0 && digits < 10 && (digits == 1 || w.b[start] != '0') {
		switch w.peek() {
		case ',', '}', ']':
			return n, true, true
		}
	}
	w.i = start // a fraction, an exponent, or not a number
	v, ok := w.value()
	n, given = v.count()
	return n, given, ok
}

func (w *scanner) skip() bool {
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
	case 'N':
		return w.literal("NaN")
	case 'I':
		return w.literal("Infinity")
	}
	return w.number()
}

// number parses a number in JSON's grammar (RFC 8259, section 6), or -Infinity.
func (w *scanner) number() bool {
	if w.at('-') {
		if w.i++; w.at('I') {
			return w.literal("Infinity")
		}
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

func (w *scanner) at(c byte) bool { return w.i < len(w.b) && w.b[w.i] == c }

func (w *scanner) digits() bool {
	start := w.i
	for w.i < len(w.b) && '0' <= w.b[w.i] && w.b[w.i] <= '9' {
		w.i++
	}
	return w.i > start
}
