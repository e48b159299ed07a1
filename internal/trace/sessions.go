package trace

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"replayd/internal/fault"
)

// sessionsSchema names the format in the first line of a file.
const sessionsSchema = "replayd.sessions.v1"

// MaxParents is the most rows that a row can wait for.
const MaxParents = 1024

// sessionsHeader reads the first line of a file of the format Sessions, of any version. It reports whether the line is one.
func sessionsHeader(line []byte) (block int, found fault.List, ok bool) {
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
func (p *pass) begin(block, number int, found fault.List) {
	for _, f := range found {
		p.faults.add(number, f)
	}
	p.know(block)
	p.format = Sessions
	p.layout = dialect{unit: time.Millisecond, graph: true, header: p.options.Header}.layout(0)
	p.layout.partial = true
}

// know sets the tokens of a block, if the file or its format says them and the options do not.
func (p *pass) know(block int) {
	if block > 0 && p.options.BlockTokens == 0 {
		p.given, p.size, p.figures = true, block, newStatsCollector(block, p.options.Gap)
	}
}

// maxRows bounds the number of a row.
const maxRows = 1 << 40

// edges reads a list of parents, each as the Writer has it.
func (c *cursor) edges(unit time.Duration) (list []Edge, ok bool) {
	list = []Edge{}
	if !c.accept('[') {
		return nil, false
	}
	for !c.accept(']') {
		if len(list) > 0 && !c.accept(',') || len(list) == MaxParents {
			return nil, false
		}
		e, ok := c.edge(unit)
		if !ok {
			return nil, false
		}
		list = append(list, e)
	}
	return list, true
}

func (c *cursor) edge(unit time.Duration) (e Edge, ok bool) {
	if !c.accept('{') || !c.key("row") {
		return e, false
	}
	row, ok := c.whole()
	e.Row = int(row)
	if c.accept(',') {
		if ok = ok && c.key("wait"); ok {
			e.Wait, ok = c.time(unit)
		}
	}
	return e, ok && row < maxRows && c.accept('}')
}

func (c *cursor) key(name string) bool {
	key, ok := c.word()
	return ok && string(key) == name && c.accept(':')
}

// graph reads the fields that only the format Sessions has.
func (o *object) graph(r *row) {
	if o.value("row") != nil {
		r.claimed = o.rowNumber("row")
	}
	r.Agent = o.text("agent_id", MaxSessionBytes)
	r.Gap, _ = o.time("gap", time.Millisecond)
	v := o.value("after")
	if v == nil {
		return
	}
	c, ok := cursor{b: v}, false
	if r.After, ok = c.edges(time.Millisecond); ok && c.i == len(v) {
		r.Floating = len(r.After) > 0 && !r.timed
		return
	}
	const want = `a list of {"row": …, "wait": …}`
	list := o.list("after", want, MaxParents)
	r.After = make([]Edge, len(list))
	for i, text := range list {
		e := object{}
		if json.Unmarshal(text, &e.values) != nil {
			o.fault("after", want, shown(v))
			return
		}
		e.needs("row", "the number of an earlier row")
		r.After[i].Row = e.rowNumber("row")
		r.After[i].Wait, _ = e.time("wait", time.Millisecond)
		o.addFaults(fmt.Sprintf("after[%d]", i), e.faults)
	}
	r.Floating = len(r.After) > 0 && !r.timed
}

func (o *object) rowNumber(key string) int {
	v := o.value(key)
	n, err := strconv.ParseUint(string(v), 10, 64)
	if v != nil && (err != nil || n >= maxRows) {
		o.fault(key, "the number of a row, from 0", shown(v))
		return 0
	}
	return int(n)
}
