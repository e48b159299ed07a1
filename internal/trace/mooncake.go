package trace

import (
	"bytes"
	"math"
	"time"

	"replayd/internal/fault"
)

// A row is a Record as its own line states it, before the rest of the file completes it.
type row struct {
	Record
	at     int64 // nanoseconds on the file's own clock
	timed  bool  // the line has a timestamp
	dated  bool  // it is a date
	failed bool  // the request got no answer; the line does not count as a row

	unit   time.Duration // of the timestamp, where it is not the format's
	unsent int           // headers that the row may not set
	kinds  idKinds

	chat, parent int64 // only in Bailian's format
	claimed      int   // only in the format Sessions: the row's own number by its line; -1: the line has none

	object object // of plain, kept for its memory
}

// A decoder fills a row from a line. It reuses the memory of Blocks and of no other field of the Record.
type decoder func(line []byte, r *row) fault.List

// maxMillis is the largest timestamp in milliseconds, in the year 2255. In nanoseconds it fits into an int64.
const maxMillis = 9_000_000_000_000

func (r *row) clear() { *r = row{Record: Record{Blocks: r.Blocks[:0]}, claimed: -1, object: r.object} }

type dialect struct {
	unit    time.Duration                 // of a timestamp
	lengths bool                          // rows have timestamp, input_length, output_length and hash_ids; other fields are ignored
	chats   bool                          // rows also have the fields that link chats
	graph   bool                          // rows may also have row, after, agent_id and gap
	header  func(name, value string) bool // says whether a row may set a header; nil: none
}

// vllmBlock is how many tokens an id stands for in a timed trace, as vllm bench serve --dataset-name timed_trace reads
// it (vllm/benchmarks/datasets/datasets.py, class TimedTrace, as of v0.20), unless --timed-trace-chunk-hash-size says
// otherwise. Timestamps are seconds unless --timed-trace-sec-multiplier says otherwise. Input and output length are
// required.
const vllmBlock = 16

// layout returns how a file of the dialect is read, with so many tokens in a block if no row tells.
func (d dialect) layout(block int) layout {
	keys := []string{"timestamp", "input_length", "output_length", "hash_ids"}
	if !d.lengths {
		keys = append(keys, "session_id", "delay", "text_input", "messages", "tools", "payload", "extra", "headers")
	}
	if d.chats {
		keys = append(keys, "chat_id", "parent_chat_id", "turn")
	}
	if d.graph {
		keys = append(keys, "row", "after", "agent_id", "gap")
	}
	return layout{decode: d.decode, unit: d.unit, block: block, keys: keys}
}

// decode tries plain first, which reads the rows of big traces many times as fast as encoding/json. If plain fails, json
// reads the row and words its faults.
func (d dialect) decode(line []byte, r *row) fault.List {
	r.clear()
	if d.plain(line, r) {
		return nil
	}
	r.clear()
	return d.json(line, r)
}

// plain reads a row that split takes and that has no fault. If it returns false, the content of the row is undefined.
func (d dialect) plain(line []byte, r *row) bool {
	r.object = object{members: r.object.members[:0]}
	return r.object.split(line, d.graph) && len(d.read(&r.object, r)) == 0
}

// json reads any row and reports all of its faults.
func (d dialect) json(line []byte, r *row) fault.List {
	o := object{}
	if found := o.read(line, "row"); found != nil {
		return found
	}
	found := d.read(&o, r)
	r.object = object{values: o.values, members: r.object.members[:0]} // for countUnused
	return found
}

// split reads an object of plain numbers and strings, each key once, with or without hash_ids and, in a graph, after. Of
// these two lists it only finds the end. It returns false at the first thing that is out of the ordinary.
func (o *object) split(line []byte, graph bool) bool {
	c := cursor{b: line}
	if !c.accept('{') {
		return false
	}
	for {
		key, ok := c.word()
		if !ok || !c.accept(':') || o.value(string(key)) != nil {
			return false
		}
		c.blanks()
		start := c.i
		switch {
		case c.i == len(c.b):
			return false
		case c.b[c.i] == '"':
			_, ok = c.word()
		case c.b[c.i] == '[' && (string(key) == "hash_ids" || graph && string(key) == "after"):
			c.i += bytes.IndexByte(c.b[c.i:], ']') + 1
			ok = c.i > start
		default:
			ok = c.number()
		}
		o.members = append(o.members, member{key, c.b[start:c.i]})
		if !ok || !c.accept(',') {
			return ok && c.accept('}') && c.i == len(c.b)
		}
	}
}

// A cursor reads one line of JSON.
type cursor struct {
	b []byte
	i int
}

func (c *cursor) blanks() {
	for c.i < len(c.b) && (c.b[c.i] == ' ' || c.b[c.i] == '\t') {
		c.i++
	}
}

// accept skips one byte of punctuation, if it comes next.
func (c *cursor) accept(want byte) bool {
	c.blanks()
	if c.i < len(c.b) && c.b[c.i] == want {
		c.i++
		return true
	}
	return false
}

// word reads a string that is not empty, is ASCII and has no escapes or control characters.
func (c *cursor) word() ([]byte, bool) {
	if !c.accept('"') {
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

// number reads a number without an exponent whose whole part fits 64 bits.
func (c *cursor) number() bool {
	if c.i < len(c.b) && c.b[c.i] == '-' {
		c.i++
	}
	if !c.digit() { // no blank may follow the sign
		return false
	}
	_, ok := c.whole()
	if !ok || c.i == len(c.b) || c.b[c.i] != '.' {
		return ok
	}
	c.i++
	ok = c.digit()
	for c.digit() {
		c.i++
	}
	return ok
}

// time reads a number of units without an exponent.
func (c *cursor) time(unit time.Duration) (d time.Duration, ok bool) {
	c.blanks()
	start := c.i
	if !c.number() {
		return 0, false
	}
	n, ok := nanos(string(c.b[start:c.i]), unit)
	return time.Duration(n), ok
}

func (c *cursor) digit() bool { return c.i < len(c.b) && c.b[c.i]-'0' <= 9 }

// whole reads an integer that fits 64 bits. The caller fails on whatever must not follow an integer (a point, an
// exponent).
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
	if !c.accept('[') {
		return into, false
	}
	if c.accept(']') {
		return into, true
	}
	for {
		n, ok := c.whole()
		if !ok {
			return into, false
		}
		into = append(into, n)
		if !c.accept(',') {
			return into, c.accept(']')
		}
	}
}
