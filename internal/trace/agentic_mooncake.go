package trace

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// Dynamo's agentic Mooncake, version 2 (crate dynamo-data-gen 1.6.0, src/mooncake.rs): JSON lines, a header and then requests that
// name the requests that they depend on. A play is a session of ours, its sessions are the session's own thread and its
// sub-agents. Times are milliseconds. The model, the token ids and the priorities are not read.
const (
	agenticSchema  = "dynamo.agentic_mooncake"
	agenticVersion = 2
)

// An agenticReader lowers requests one by one. Each depends on requests of earlier lines.
type agenticReader struct {
	lowering *lowering
	block    int
	ids      map[string]int // by request_id: the row
	plays    []string       // by row
}

func newAgenticReader(l *lowering) *agenticReader {
	return &agenticReader{lowering: l, ids: map[string]int{}}
}

func (a *agenticReader) read(name string, line int, text []byte) error {
	a.lowering.faults.name = name
	o := object{}
	found := o.read(text, "row")
	if found == nil && (a.block == 0 || o.value("schema") != nil) {
		found = a.header(&o)
	} else if found == nil {
		r := Record{}
		if found = a.row(&o, &r); len(found) == 0 {
			return a.lowering.row(&r)
		}
	}
	for _, f := range found {
		a.lowering.faults.add(line, f)
	}
	return nil
}

func (a *agenticReader) header(o *object) []fault {
	if schema := o.text("schema", MaxSessionBytes); schema != agenticSchema {
		got := "none"
		if schema != "" {
			got = strconv.Quote(schema)
		}
		o.fault("header", fmt.Sprintf(`{"schema":"%s","version":%d, …}`, agenticSchema, agenticVersion), got)
		a.block = blockSizes[0] // for the faults of the rows
		return o.faults
	}
	if version := o.count("version"); version != agenticVersion {
		o.fault("version", strconv.Itoa(agenticVersion), shown(o.value("version")))
	}
	if a.block = o.length("block_size"); o.value("block_size") == nil {
		o.fault("block_size", "an integer ≥ 1", "none")
	}
	if a.block == 0 {
		a.block = blockSizes[0]
	}
	if a.lowering.block > 0 && a.block != a.lowering.block {
		o.fault("block_size", fmt.Sprintf("%d, as in the file before", a.lowering.block), strconv.Itoa(a.block))
	}
	a.lowering.block = a.block
	return o.faults
}

func (a *agenticReader) row(o *object, r *Record) []fault {
	id := o.text("request_id", MaxSessionBytes)
	r.Session = o.text("play_id", MaxSessionBytes)
	if agent := o.text("session_id", MaxSessionBytes); agent != r.Session {
		r.Agent = agent
	}
	for _, field := range []string{"request_id", "play_id", "session_id"} {
		if o.value(field) == nil {
			o.fault(field, "a string", "none")
		}
	}
	if other, known := a.ids[id]; known && id != "" {
		o.fault("request_id", "one that no other request has", fmt.Sprintf("%q, that of request %d", id, other))
	}
	r.InputTokens, r.OutputTokens = o.alias("input_length", "input_tokens"), o.alias("output_length", "output_tokens")
	r.Blocks = o.ids("hash_ids", nil)
	if r.InputTokens == 0 { // the blocks are full
		r.InputTokens = min(len(r.Blocks)*a.block, MaxTokens)
	}
	if r.InputTokens == 0 && len(o.faults) == 0 {
		o.fault("input_length", "an integer ≥ 1", "none")
	}
	if n, full := len(r.Blocks), r.InputTokens/a.block; len(o.faults) == 0 && n > 0 && n != full && n != blocksOf(r.InputTokens, a.block) {
		o.fault("hash_ids", fmt.Sprintf("%d ids for %d tokens in blocks of %d", blocksOf(r.InputTokens, a.block), r.InputTokens, a.block), strconv.Itoa(n))
	}
	at, ok := o.time("not_before_ms", time.Millisecond)
	if r.Offset = time.Duration(at); !ok {
		o.fault("not_before_ms", "milliseconds ≥ 0", "none")
	}
	a.depend(o, r)
	if len(o.faults) == 0 {
		a.ids[id] = len(a.plays)
		a.plays = append(a.plays, r.Session)
	}
	return o.faults
}

// alias reads a length that has two names.
func (o *object) alias(key, other string) int {
	if o.value(key) == nil && o.value(other) != nil {
		return o.length(other)
	}
	return o.length(key)
}

// depend reads the dependencies. One on the completion of a request is an edge. One on its dispatch is due with that request:
// after what that one waits for.
func (a *agenticReader) depend(o *object, r *Record) {
	r.After = []Edge{}
	var list []json.RawMessage
	if v := o.value("dependencies"); v != nil && json.Unmarshal(v, &list) != nil {
		o.fault("dependencies", "a list of dependencies", shown(v))
	}
	for i, text := range list {
		d := object{}
		if found := d.read(text, "dependency"); found != nil {
			o.fault(fmt.Sprintf("dependencies[%d]", i), found[0].want, found[0].got)
			continue
		}
		id, trigger := d.text("request_id", MaxSessionBytes), d.text("trigger", MaxSessionBytes)
		delay, _ := d.time("delay_ms", time.Millisecond)
		parent, known := a.ids[id]
		switch {
		case !known:
			d.fault("request_id", "that of an earlier line", shown(d.value("request_id")))
		case a.plays[parent] != r.Session:
			d.fault("request_id", "a request of the same play", shown(d.value("request_id")))
		case trigger == "completion":
			r.After = addEdge(r.After, Edge{parent, time.Duration(delay)})
		case trigger == "dispatch":
			of := a.lowering.rows[parent]
			if !of.floating {
				r.Offset = max(r.Offset, later(time.Duration(of.at), time.Duration(delay)))
			}
			for _, e := range a.lowering.parents[of.edges : of.edges+int(of.parents)] {
				r.After = addEdge(r.After, Edge{e.Row, later(e.Wait, time.Duration(delay))})
			}
		default:
			d.fault("trigger", "completion or dispatch", strconv.Quote(trigger))
		}
		for _, f := range d.faults {
			o.fault(fmt.Sprintf("dependencies[%d].%s", i, f.field), f.want, f.got)
		}
	}
	if len(r.After) > MaxParents {
		o.fault("dependencies", fmt.Sprintf("at most %d", MaxParents), strconv.Itoa(len(r.After)))
		r.After = nil
	}
	r.Floating = len(r.After) > 0 && r.Offset == 0
}

// addEdge adds an edge to a list that has each parent once, with its longest wait.
func addEdge(list []Edge, e Edge) []Edge {
	for i := range list {
		if list[i].Row == e.Row {
			list[i].Wait = max(list[i].Wait, e.Wait)
			return list
		}
	}
	return append(list, e)
}
