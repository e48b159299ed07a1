package trace

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// idKinds says how a row writes the ids of its blocks.
type idKinds uint8

const (
	numberIDs idKinds = 1 << iota
	textIDs
)

// ids reads a list of ids: any numbers and texts. Numbers that are equal are one id, however they are written. A text is an id
// of its own, so that "1" is not 1.
func (o *object) ids(key string, into []uint64) []uint64 {
	v := o.value(key)
	if v == nil {
		return into
	}
	start := len(into)
	c := cursor{b: v}
	if ids, ok := c.wholes(into); ok && c.i == len(v) {
		if len(ids) > start {
			o.kinds |= numberIDs
		}
		return ids
	}
	c = cursor{b: v}
	if ids, ok := c.texts(into); ok && c.i == len(v) {
		o.kinds |= textIDs
		return ids
	}
	var list []json.RawMessage
	if json.Unmarshal(v, &list) != nil {
		o.fault(key, "a list of numbers or texts", shown(v))
		return into
	}
	for i, item := range list {
		id, kind := idOf(item)
		if kind == 0 {
			o.fault(fmt.Sprintf("%s[%d]", key, i), "a number or a text", shown(item))
			return into
		}
		o.kinds |= kind
		into = append(into, id)
	}
	return into
}

// texts reads a list of plain strings.
func (c *cursor) texts(into []uint64) ([]uint64, bool) {
	if !c.accept('[') {
		return into, false
	}
	for {
		text, ok := c.word()
		if !ok {
			return into, false
		}
		into = append(into, idOfText("t", text))
		if !c.accept(',') {
			return into, c.accept(']')
		}
	}
}

// idOf returns the id that a JSON value is, and its kind; 0: the value is none.
func idOf(item json.RawMessage) (id uint64, kind idKinds) {
	switch item[0] {
	case '"':
		var text string
		if json.Unmarshal(item, &text) != nil {
			return 0, 0
		}
		return idOfText("t", []byte(text)), textIDs
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return idOfNumber(string(item)), numberIDs
	}
	return 0, 0
}

// idOfNumber takes an integer of 64 bits as it is; a negative one, as Python's hashes can be, as its two's complement. Other
// numbers are hashed: integers of more bits by their digits, fractions by their value.
func idOfNumber(text string) uint64 {
	if id, err := strconv.ParseUint(text, 10, 64); err == nil {
		return id
	}
	if id, err := strconv.ParseInt(text, 10, 64); err == nil {
		return uint64(id)
	}
	if strings.ContainsAny(text, ".eE") {
		v, _ := strconv.ParseFloat(text, 64) // ±Inf for what is too large
		if v == math.Trunc(v) && math.Abs(v) < 1<<63 {
			return uint64(int64(v))
		}
		text = strconv.FormatFloat(v, 'g', -1, 64)
	}
	return idOfText("n", []byte(text))
}

// idOfText hashes to 64 bits, so that no table of texts is kept. That two of 10 million texts are one id has a chance of 3 in
// a million.
func idOfText(domain string, text []byte) uint64 {
	h := sha256.Sum256(append([]byte(domain), text...))
	return binary.LittleEndian.Uint64(h[:])
}
