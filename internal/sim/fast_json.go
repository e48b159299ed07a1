package sim

import (
	"bytes"
	"strconv"
)

// A prompt of 100 KB takes encoding/json over a millisecond. At 100 requests/s this is a noticeable share of the two
// cores on which a client is measured. So long, plain values are lifted out of a body before encoding/json parses it:
// strings without escapes become the string "\u0000N", arrays of token ids become ["\u0000N"]. Everything else stays,
// and the rest is valid JSON if and only if the body is.

// liftBytes is the length from which a value is lifted. Names of known fields must be shorter.
const liftBytes = 64

// A lifted is a part of a body: the bytes of a string without the quotes, or an array with its brackets.
type lifted struct {
	text []byte
	ids  bool
}

// lift cuts long strings and lists of token ids out of a JSON body, and puts placeholders in their places. It returns the
// rest and the parts. The parts are sub-slices of the body.
func lift(body []byte, from int) (skeleton []byte, parts []lifted) {
	if bytes.Contains(body, []byte(`\u0000`)) { // could be mistaken for a placeholder
		return body, nil
	}
	kept := 0
	put := func(start, end int, ids bool, open, shut string) {
		part := body[start:end]
		if !ids {
			part = part[1 : len(part)-1]
		}
		skeleton = append(append(append(skeleton, body[kept:start]...), open...), `"\u0000`...)
		skeleton = append(append(strconv.AppendInt(skeleton, int64(len(parts)), 10), '"'), shut...)
		parts = append(parts, lifted{text: part, ids: ids})
		kept = end
	}
	for i := 0; i < len(body); {
		switch body[i] {
		case '"':
			end, plain := endOfString(body, i)
			if plain && end-i >= from {
				put(i, end, false, "", "")
			}
			i = end
		case '[':
			end := endOfIDs(body, i)
			if end-i >= from {
				put(i, end, true, "[", "]")
			}
			i = max(end, i+1)
		default:
			i++
		}
	}
	if parts == nil {
		return body, nil
	}
	return append(skeleton, body[kept:]...), parts
}

// endOfString finds the end of the string that begins at the quote body[i]. The string is plain if it is complete,
// valid JSON and its bytes are its text.
func endOfString(body []byte, i int) (end int, plain bool) {
	n := bytes.IndexByte(body[i+1:], '"')
	if n < 0 {
		return len(body), false
	}
	text := body[i+1 : i+1+n]
	if bytes.IndexByte(text, '\\') < 0 {
		for _, b := range text {
			if b < ' ' { // must be escaped in JSON
				return i + n + 2, false
			}
		}
		return i + n + 2, true
	}
	for j := i + 1; j < len(body); j++ {
		switch body[j] {
		case '\\':
			j++
		case '"':
			return j + 1, false
		}
	}
	return len(body), false
}

// endOfIDs returns the end of the array of token ids that begins at the bracket body[i], or 0 if there is none.
func endOfIDs(body []byte, i int) int {
	rest := body[i+1:]
	for {
		rest = skipSpace(rest)
		_, after, ok := cutID(rest)
		if !ok {
			return 0
		}
		rest = skipSpace(after)
		if len(rest) == 0 {
			return 0
		}
		sep := rest[0]
		rest = rest[1:]
		if sep == ']' {
			return len(body) - len(rest)
		}
		if sep != ',' {
			return 0
		}
	}
}

// cutID reads a JSON integer from 0 to 2^31-1.
func cutID(b []byte) (id uint32, rest []byte, ok bool) {
	n, v := 0, uint64(0)
	for n < len(b) && n < 11 && b[n] >= '0' && b[n] <= '9' {
		v = v*10 + uint64(b[n]-'0')
		n++
	}
	if n == 0 || v >= 1<<31 || n > 1 && b[0] == '0' {
		return 0, b, false
	}
	return uint32(v), b[n:], true
}

func skipSpace(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t' || b[0] == '\n' || b[0] == '\r') {
		b = b[1:]
	}
	return b
}
