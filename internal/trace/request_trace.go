package trace

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"replayd/internal/fault"
)

// requestTraceSchema names Dynamo's request trace (docs.nvidia.com/dynamo, Request Trace Reference, v1.3 to v1.6; crate
// dynamo-data-gen 1.6.0, src/request_trace): JSON lines that a frontend writes, in the order of their ends. Only request_end
// events with their replay fields are read. A line may wrap its event in an object with the key event.
const requestTraceSchema = "dynamo.request.trace.v1"

// A requestTraceReader collects requests until all are known.
type requestTraceReader struct {
	lowering *lowering
	numbers  map[uint64]uint64 // by sequence hash: the number of the block
	fresh    uint64            // the number of the next new block
	requests []traced          // by row of the lowering
	parents  map[string]string // by session: its parent
}

// A traced request has a row.
type traced struct {
	row        int
	start, end time.Duration
	session    string
}

func newRequestTraceReader(l *lowering) *requestTraceReader {
	t := &requestTraceReader{lowering: l, numbers: map[uint64]uint64{}, parents: map[string]string{}}
	l.settle = t.settle
	return t
}

func (t *requestTraceReader) read(_ int, text []byte) (fault.List, error) {
	o := object{}
	found := o.read(text, "row")
	if event := o.value("event"); found == nil && event != nil {
		o = object{}
		found = o.read(event, "event")
	}
	if found != nil {
		return found, nil
	}
	if o.value("event_type") == nil && o.value("schema") == nil { // a mark that an uploader leaves
		return nil, nil
	}
	switch kind := o.text("event_type", MaxSessionBytes); kind {
	case "request_payload", "tool_start", "tool_end", "tool_error":
		return nil, nil
	case "request_end":
		r := Record{}
		if found := t.request(&o, &r); len(found) > 0 {
			return found, nil
		}
		return nil, t.lowering.row(&r)
	default:
		o.fault("event_type", "request_end, request_payload, tool_start, tool_end or tool_error", strconv.Quote(kind))
		return o.faults, nil
	}
}

// inner returns an object inside o. Its faults are o's.
func (o *object) inner(key string) (in object, ok bool) {
	v := o.value(key)
	if v == nil {
		return in, false
	}
	if json.Unmarshal(v, &in.values) != nil {
		o.fault(key, "an object", shown(v))
		return in, false
	}
	return in, true
}

func (t *requestTraceReader) request(o *object, r *Record) fault.List {
	if schema := o.text("schema", MaxSessionBytes); schema != requestTraceSchema {
		o.fault("schema", requestTraceSchema, strconv.Quote(schema))
	}
	at := traced{row: len(t.lowering.rows)}
	o.needs("request", "an object")
	in, ok := o.inner("request")
	if !ok {
		return o.faults
	}
	id := in.text("request_id", MaxLineBytes)
	if _, known := t.lowering.ids[id]; known {
		in.fault("request_id", "one that no other request has", strconv.Quote(id))
	}
	r.OutputTokens = max(1, in.count("output_tokens"))
	in.needs("output_tokens", "an integer ≥ 0")
	start, received := in.time("request_received_ms", time.Millisecond)
	took, ok := in.time("total_time_ms", time.Millisecond)
	end, ended := o.time("event_time_unix_ms", time.Millisecond)
	switch {
	case received && !ok && ended:
		took = max(0, end-start)
	case !received && ended:
		start = max(0, end-took)
	case !received:
		in.needs("request_received_ms", "milliseconds ≥ 0, or event_time_unix_ms")
	}
	r.Offset, at.start, at.end = start, start, later(start, took)
	if replay, ok := in.inner("replay"); ok {
		t.replay(&replay, r)
		in.addFaults("replay", replay.faults)
	} else if r.InputTokens = in.length("input_tokens"); r.InputTokens == 0 {
		in.needs("replay", "an object, or input_tokens")
	}
	o.addFaults("request", in.faults)
	if context, ok := o.inner("agent_context"); ok {
		at.session = context.text("session_id", MaxSessionBytes)
		// A trajectory has the id of its session in all captures that AIPerf's authors saw (dataset/graph/adapters/dynamo/trace_reader.py).
		parent := cmp.Or(context.text("parent_trajectory_id", MaxSessionBytes), context.text("parent_session_id", MaxSessionBytes))
		if parent != "" && parent != at.session {
			t.parents[at.session] = parent
		}
		o.addFaults("agent_context", context.faults)
	}
	if len(o.faults) == 0 {
		t.lowering.ids[id] = ""
		t.requests = append(t.requests, at)
	}
	return o.faults
}

// replay reads the blocks of a prompt. Equal hashes mean equal prompts up to that block.
func (t *requestTraceReader) replay(o *object, r *Record) {
	block := o.length("trace_block_size")
	o.needs("trace_block_size", anInteger)
	t.lowering.block = cmp.Or(t.lowering.block, block)
	if block > 0 && block != t.lowering.block {
		o.fault("trace_block_size", fmt.Sprintf("%d, as on the lines before", t.lowering.block), strconv.Itoa(block))
	}
	r.InputTokens = o.length("input_length")
	o.needs("input_length", anInteger)
	r.Blocks = o.ids("input_sequence_hashes", nil)
	t.lowering.kinds |= o.kinds
	if most := blocksOf(r.InputTokens, max(1, block)); len(o.faults) == 0 && len(r.Blocks) > most {
		o.fault("input_sequence_hashes", fmt.Sprintf("at most %d for %d tokens in blocks of %d", most, r.InputTokens, block), strconv.Itoa(len(r.Blocks)))
	}
	for i, hash := range r.Blocks {
		r.Blocks[i] = numberOf(t.numbers, hash, &t.fresh)
	}
}
