package trace

import (
	"math"
	"time"
)

// A row is a Record as its line says it, before the file as a whole has given it its place.
type row struct {
	Record
	at    int64 // nanoseconds on the file's own clock
	timed bool  // the line has a timestamp
}

// A decoder fills a row from a line. Blocks is overwritten in place; everything else in the row belongs to it.
type decoder func(line []byte, r *row) []fault

// maxMillis keeps instants, in nanoseconds, inside an int64: the year 2255.
const maxMillis = 9_000_000_000_000

// decodeMooncake takes the rows that big traces consist of by a short way, 20 times as fast as encoding/json, which
// takes all others and words every fault.
func decodeMooncake(line []byte, r *row) []fault {
	r.clear()
	if decodePlain(line, r) {
		return nil
	}
	r.clear()
	return decodeJSON(line, r)
}

func (r *row) clear() { *r = row{Record: Record{Blocks: r.Blocks[:0]}} }

// decodePlain reads an object of whole numbers, with hash_ids and a plain session_id where it has them. It returns false at the first thing
// that is out of the ordinary; the row is then in disorder.
func decodePlain(line []byte, r *row) bool {
	c := cursor{b: line}
	if !c.take('{') {
		return false
	}
	var input, output uint64
	inRange := true // output_length, when there is one, is in range
	for {
		key, ok := c.word()
		if !ok || !c.take(':') {
			return false
		}
		switch string(key) {
		case "timestamp":
			var at uint64
			if at, ok = c.whole(); at > maxMillis {
				return false
			}
			r.at, r.timed = int64(at)*1e6, true
		case "input_length":
			input, ok = c.whole()
		case "output_length":
			output, ok = c.whole()
			inRange = output >= 1 && output <= MaxTokens
		case "delay":
			var delay uint64
			if delay, ok = c.whole(); delay > maxMillis {
				return false
			}
			r.Delay = time.Duration(delay) * time.Millisecond
		case "hash_ids":
			r.Blocks, ok = c.wholes(r.Blocks[:0])
		case "session_id":
			var session []byte
			if session, ok = c.word(); len(session) > MaxSessionBytes {
				return false
			}
			r.Session = string(session)
		default:
			return false
		}
		switch {
		case !ok:
			return false
		case c.take(','):
		case c.take('}'):
			r.InputTokens, r.OutputTokens = int(input), int(output)
			return c.i == len(c.b) && inRange && input >= 1 && input <= MaxTokens
		default:
			return false
		}
	}
}

// A cursor goes through one line of JSON.
type cursor struct {
	b []byte
	i int
}

func (c *cursor) blanks() {
	for c.i < len(c.b) && (c.b[c.i] == ' ' || c.b[c.i] == '\t') {
		c.i++
	}
}

// take moves over one byte of punctuation, if it is the next.
func (c *cursor) take(want byte) bool {
	c.blanks()
	if c.i < len(c.b) && c.b[c.i] == want {
		c.i++
		return true
	}
	return false
}

// word reads a string that is neither empty nor has escapes, controls or anything beyond ASCII.
func (c *cursor) word() ([]byte, bool) {
	if !c.take('"') {
		return nil, false
	}
	for start := c.i; c.i < len(c.b); c.i++ {
		switch b := c.b[c.i]; {
		case b == '"':
			c.i++
			return c.b[start : c.i-1], c.i-1 > start
		case b == '\\' || b < ' ' || b >= 0x7f:
			return nil, false
		}
	}
	return nil, false
}

// whole reads a whole number that fits 64 bits. What must not follow one (a point, an exponent) stops the caller.
func (c *cursor) whole() (n uint64, ok bool) {
	c.blanks()
	start := c.i
	for ; c.i < len(c.b); c.i++ {
		d := uint64(c.b[c.i] - '0')
		if d > 9 {
			break
		}
		if c.i-start >= 19 && (c.i-start > 19 || n > (math.MaxUint64-d)/10) {
			return 0, false
		}
		n = n*10 + d
	}
	digits := c.i - start
	return n, digits == 1 || digits > 1 && c.b[start] != '0'
}

func (c *cursor) wholes(into []uint64) ([]uint64, bool) {
	if !c.take('[') {
		return into, false
	}
	if c.take(']') {
		return into, true
	}
	for {
		n, ok := c.whole()
		if !ok {
			return into, false
		}
		into = append(into, n)
		if !c.take(',') {
			return into, c.take(']')
		}
	}
}
