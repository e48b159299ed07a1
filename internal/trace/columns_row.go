package trace

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"replayd/internal/fault"
)

// The cells of a row, by the order of Columns.parts.
const (
	timestampCell = iota
	inputCell
	outputCell
	sessionCell
	cellCount
)

// A tableReader reads the rows of a table.
type tableReader struct {
	columns Columns
	unit    time.Duration
	by      byte  // separates cells; 0: JSON lines
	count   int   // of columns
	places  []int // by column, up to the last one that is read: which cell it is; -1: none
}

func (t *tableReader) decode(line []byte, r *row) fault.List {
	r.clear()
	var cells [cellCount][]byte
	n := 0
	for rest, more := line, true; more; n++ {
		var cell []byte
		var ok bool
		if cell, rest, more, ok = cut(rest, t.by); !ok {
			return fault.List{fault.New("row", "quotes around a whole cell of one line", fault.Excerpt(line))}
		}
		if n < len(t.places) && t.places[n] >= 0 {
			cells[t.places[n]] = cell
		}
	}
	if n != t.count {
		return fault.List{fault.New("row", fmt.Sprintf("%d columns, as in the header", t.count), fault.Excerpt(line))}
	}
	return t.fill(r, &cells)
}

func (t *tableReader) decodeJSON(line []byte, r *row) fault.List {
	r.clear()
	o := &r.object
	*o = object{members: o.members[:0]}
	if !o.split(line, false) {
		o = &object{}
		if found := o.read(line, "row"); found != nil {
			return found
		}
	}
	var cells [cellCount][]byte
	for i, part := range t.columns.parts()[:cellCount] {
		v := o.value(*part.name)
		var text string
		switch {
		case v == nil || *part.name == "":
		case v[0] != '"':
			cells[i] = v
		case json.Unmarshal(v, &text) == nil:
			cells[i] = trimBlanks([]byte(text), 0)
		}
	}
	return t.fill(r, &cells)
}

// fill reads the cells. One that is nil is absent.
func (t *tableReader) fill(r *row, cells *[cellCount][]byte) (faults fault.List) {
	c := &t.columns
	if c.Timestamp != "" {
		if r.at, r.dated, r.timed = instantOf(cells[timestampCell], t.unit); !r.timed {
			wrongCell(&faults, c.Timestamp, fmt.Sprintf("%s from 0 to %d, or a date such as 2006-01-02 15:04:05.999Z",
				unitName(t.unit), maxMillis*int64(time.Millisecond)/int64(t.unit)), cells[timestampCell])
		}
	}
	if c.Output != "" {
		r.failed = isZero(cells[outputCell])
	}
	if !r.failed || !isZero(cells[inputCell]) {
		r.InputTokens = tokensOf(&faults, c.Input, cells[inputCell])
	}
	if c.Output != "" && !r.failed {
		r.OutputTokens = tokensOf(&faults, c.Output, cells[outputCell])
	}
	if r.Session = string(cells[sessionCell]); len(r.Session) > MaxSessionBytes {
		faults.Add(c.Session, "want at most %d bytes, got %d", MaxSessionBytes, len(r.Session))
	}
	return faults
}

func wrongCell(faults *fault.List, column, want string, cell []byte) {
	got := "none"
	if cell != nil {
		got = fault.Excerpt(cell)
	}
	faults.Add(column, "want %s, got %s", want, got)
}

// isZero reports whether a cell says 0, also as pandas writes it: 0.0.
func isZero(cell []byte) bool {
	return bytes.HasPrefix(cell, []byte("0")) && len(bytes.Trim(cell, "0.")) == 0
}

// tokensOf reads a count of tokens. Most are a few digits.
func tokensOf(faults *fault.List, column string, cell []byte) int {
	n := 0
	for _, digit := range cell {
		if digit -= '0'; digit > 9 || len(cell) > 7 { // 9999999 is below MaxTokens
			n = 0
			break
		}
		n = 10*n + int(digit)
	}
	if n > 0 {
		return n
	}
	n, want := lengthOf(string(cell))
	if want != "" {
		wrongCell(faults, column, want, cell)
	}
	return n
}

// cut returns the first cell of a line, without quotes and blanks around it, and the rest behind the separator. more
// reports whether there is one. ok is false for a quote that does not end, or that ends before the cell does.
func cut(line []byte, by byte) (cell, rest []byte, more, ok bool) {
	if cell = trimBlanks(line, by); len(cell) == 0 || cell[0] != '"' {
		end := bytes.IndexByte(line, by)
		if end < 0 {
			return cell, nil, false, true
		}
		return trimBlanks(line[:end], by), line[end+1:], true, true
	}
	line = cell[1:]
	end, doubled := 0, false
	for {
		quote := bytes.IndexByte(line[end:], '"')
		if quote < 0 {
			return nil, nil, false, false
		}
		if end += quote; end+1 == len(line) || line[end+1] != '"' {
			break
		}
		doubled = true
		end += 2
	}
	cell, rest = trimBlanks(line[:end], 0), trimBlanks(line[end+1:], by)
	if doubled {
		cell = bytes.ReplaceAll(cell, []byte(`""`), []byte(`"`))
	}
	if len(rest) == 0 {
		return cell, nil, false, true
	}
	return cell, rest[1:], true, rest[0] == by
}

// trimBlanks returns text without blanks around it. A tab that separates cells is no blank.
func trimBlanks(text []byte, by byte) []byte {
	blank := func(c byte) bool { return c == ' ' || c == '\t' && by != '\t' }
	for len(text) > 0 && blank(text[0]) {
		text = text[1:]
	}
	for len(text) > 0 && blank(text[len(text)-1]) {
		text = text[:len(text)-1]
	}
	return text
}
