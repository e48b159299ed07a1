package trace

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// sessionsSchema names the format in the first line of a file.
const sessionsSchema = "replayd.sessions.v1"

// MaxParents is the most rows that a row can wait for.
const MaxParents = 1024

// decodeSessions reads a row of replayd's own format: one of Mooncake, with the rows that it waits for.
func decodeSessions(line []byte, r *row) []fault {
	return dialect{unit: time.Millisecond, graph: true}.decode(line, r)
}

// sessionsHeader reads the first line of a file of the format Sessions, of any version. It reports whether the line is one.
func sessionsHeader(line []byte) (block int, found []fault, ok bool) {
	o := object{}
	if !bytes.Contains(line, []byte(`"replayd.sessions.`)) || json.Unmarshal(line, &o.values) != nil {
		return 0, nil, false
	}
	schema := o.text("schema", MaxSessionBytes)
	if len(o.faults) > 0 || !strings.HasPrefix(schema, "replayd.sessions.") {
		return 0, nil, false
	}
	if schema != sessionsSchema {
		o.fault("schema", sessionsSchema, shown(o.value("schema")))
	}
	block = o.length("block_size")
	return block, o.faults, true
}

// begin starts a file of the format Sessions after its header. Its blocks have as many tokens as the header says.
func (p *pass) begin(block, number int, found []fault) {
	for _, f := range found {
		p.faults.add(number, f)
	}
	if block > 0 && p.options.BlockTokens == 0 {
		p.given, p.size, p.figures = true, block, newStatsCollector(block)
	}
	p.format = Sessions
	p.layout = layout{decode: decodeSessions, unit: time.Millisecond, partial: true}
}

// readGraph reads the fields that only the format Sessions has.
func (f *fields) readGraph(key string, c *cursor) (ok bool) {
	r := f.row
	switch key {
	case "row":
		var n uint64
		n, ok = c.whole()
		r.claimed = int(n)
		return ok && n < maxRows
	case "agent_id":
		var agent []byte
		agent, ok = c.word()
		r.Agent = string(agent)
		return ok && len(agent) <= MaxSessionBytes
	case "gap":
		var gap int64
		gap, ok = c.time(f.dialect.unit)
		r.Gap = time.Duration(gap)
		return ok
	case "after":
		r.After, ok = c.edges(f.dialect.unit)
		return ok
	}
	return false
}

// maxRows bounds the number of a row.
const maxRows = 1 << 40

// edges reads a list of parents.
func (c *cursor) edges(unit time.Duration) ([]Edge, bool) {
	list := []Edge{}
	if !c.accept('[') {
		return nil, false
	}
	if c.accept(']') {
		return list, true
	}
	for {
		e, ok := c.edge(unit)
		if !ok || len(list) == MaxParents {
			return nil, false
		}
		list = append(list, e)
		if !c.accept(',') {
			return list, c.accept(']')
		}
	}
}

func (c *cursor) edge(unit time.Duration) (e Edge, ok bool) {
	if !c.accept('{') {
		return e, false
	}
	row := false
	for {
		key, ok := c.word()
		if !ok || !c.accept(':') {
			return e, false
		}
		switch string(key) {
		case "row":
			var n uint64
			n, ok = c.whole()
			ok = ok && n < maxRows
			e.Row, row = int(n), true
		case "wait":
			var wait int64
			wait, ok = c.time(unit)
			e.Wait = time.Duration(wait)
		default:
			return e, false
		}
		if !ok {
			return e, false
		}
		if !c.accept(',') {
			return e, row && c.accept('}')
		}
	}
}

// graph is readGraph for rows that json reads.
func (o *object) graph(r *row) {
	if v := o.value("row"); v != nil {
		r.claimed = o.rowNumber("row", v)
	}
	r.Agent = o.text("agent_id", MaxSessionBytes)
	gap, _ := o.time("gap", time.Millisecond)
	r.Gap = time.Duration(gap)
	v := o.value("after")
	if v == nil {
		return
	}
	var list []map[string]json.RawMessage
	if json.Unmarshal(v, &list) != nil {
		o.fault("after", `a list of {"row": …, "wait": …}`, shown(v))
		return
	}
	if len(list) > MaxParents {
		o.fault("after", fmt.Sprintf("at most %d rows", MaxParents), strconv.Itoa(len(list)))
		return
	}
	r.After = make([]Edge, len(list))
	for i, values := range list {
		at := fmt.Sprintf("after[%d].", i)
		e := object{values: values}
		if e.value("row") == nil {
			e.fault("row", "the number of an earlier row", "none")
		} else {
			r.After[i].Row = e.rowNumber("row", e.value("row"))
		}
		wait, _ := e.time("wait", time.Millisecond)
		r.After[i].Wait = time.Duration(wait)
		for _, f := range e.faults {
			o.fault(at+f.field, f.want, f.got)
		}
	}
	r.Floating = len(r.After) > 0 && !r.timed
}

func (o *object) rowNumber(key string, v json.RawMessage) int {
	n, err := strconv.ParseUint(string(v), 10, 64)
	if err != nil || n >= maxRows {
		o.fault(key, "the number of a row, from 0", shown(v))
		return 0
	}
	return int(n)
}
