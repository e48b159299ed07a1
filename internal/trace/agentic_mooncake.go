package trace

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"replayd/internal/fault"
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

func (a *agenticReader) read(_ int, text []byte) (fault.List, error) {
	o := object{}
	if found := o.read(text, "row"); found != nil {
		return found, nil
	}
	if a.block == 0 || o.value("schema") != nil {
		return a.header(&o), nil
	}
	r := Record{}
	if found := a.row(&o, &r); len(found) > 0 {
		return found, nil
	}
	return nil, a.lowering.row(&r)
}

func (a *agenticReader) header(o *object) fault.List {
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
	a.block = cmp.Or(o.length("block_size"), blockSizes[0])
	o.needs("block_size", anInteger)
	if a.lowering.block > 0 && a.block != a.lowering.block {
		o.fault("block_size", fmt.Sprintf("%d, as in the file before", a.lowering.block), strconv.Itoa(a.block))
	}
	a.lowering.block = a.block
	return o.faults
}

func (a *agenticReader) row(o *object, r *Record) fault.List {
	id := o.text("request_id", MaxSessionBytes)
	r.Session = o.text("play_id", MaxSessionBytes)
	if agent := o.text("session_id", MaxSessionBytes); agent != r.Session {
		r.Agent = agent
	}
	for _, field := range []string{"request_id", "play_id", "session_id"} {
		o.needs(field, "a string")
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
		o.fault("input_length", anInteger, "none")
	}
	if n, full := len(r.Blocks), r.InputTokens/a.block; len(o.faults) == 0 && n > 0 && n != full && n != blocksOf(r.InputTokens, a.block) {
		o.fault("hash_ids", fmt.Sprintf("%d ids for %d tokens in blocks of %d", blocksOf(r.InputTokens, a.block), r.InputTokens, a.block), strconv.Itoa(n))
	}
	r.Offset, _ = o.time("not_before_ms", time.Millisecond)
	o.needs("not_before_ms", "milliseconds ≥ 0")
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
	for i, text := range o.list("dependencies", "a list of dependencies", MaxParents) {
		d := object{}
		if found := d.read(text, ""); found != nil {
			o.addFaults(fmt.Sprintf("dependencies[%d]", i), found)
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
			r.After = AddEdge(r.After, Edge{parent, delay})
		case trigger == "dispatch":
			of := a.lowering.rows[parent]
			if !of.floating {
				r.Offset = max(r.Offset, later(time.Duration(of.at), delay))
			}
			for _, e := range a.lowering.parents[of.edges : of.edges+int(of.parents)] {
				r.After = AddEdge(r.After, Edge{e.Row, later(e.Wait, delay)})
			}
		default:
			d.fault("trigger", "completion or dispatch", strconv.Quote(trigger))
		}
		o.addFaults(fmt.Sprintf("dependencies[%d]", i), d.faults)
	}
	if len(r.After) > MaxParents {
		o.fault("dependencies", fmt.Sprintf("at most %d", MaxParents), strconv.Itoa(len(r.After)))
		r.After = nil
	}
	r.Floating = len(r.After) > 0 && r.Offset == 0
}
