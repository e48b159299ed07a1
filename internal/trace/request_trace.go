package trace

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// requestTraceSchema names Dynamo's request trace (docs.nvidia.com/dynamo, Request Trace Reference, v1.3 to v1.6; crate
// dynamo-data-gen 1.6.0, src/request_trace): JSON lines that a frontend writes, in the order of their ends. Only request_end
// events with their replay fields are read. A line may wrap its event in an object with the key event.
const requestTraceSchema = "dynamo.request.trace.v1"

// A requestTraceReader collects requests until all are known.
type requestTraceReader struct {
	lowering *lowering
	ids      map[string]struct{}
	numbers  map[uint64]uint64 // by sequence hash: the number of the block
	requests []traced          // by row of the lowering
	parents  map[string]string // by session: its parent
}

// A traced request has a row.
type traced struct {
	row        int
	start, end int64 // nanoseconds
	session    string
}

func newRequestTraceReader(l *lowering) *requestTraceReader {
	t := &requestTraceReader{lowering: l, ids: map[string]struct{}{}, numbers: map[uint64]uint64{}, parents: map[string]string{}}
	l.settle = t.settle
	return t
}

func (t *requestTraceReader) read(name string, line int, text []byte) error {
	t.lowering.faults.name = name
	o := object{}
	found := o.read(text, "row")
	if event := o.value("event"); found == nil && event != nil {
		o = object{}
		found = o.read(event, "event")
	}
	if found == nil {
		switch kind := o.text("event_type", MaxSessionBytes); kind {
		case "request_payload", "tool_start", "tool_end", "tool_error":
			return nil
		case "request_end":
			r := Record{}
			if found = t.request(&o, &r); len(found) == 0 {
				return t.lowering.row(&r)
			}
		default:
			o.fault("event_type", "request_end, request_payload, tool_start, tool_end or tool_error", strconv.Quote(kind))
			found = o.faults
		}
	}
	for _, f := range found {
		t.lowering.faults.add(line, f)
	}
	return nil
}

// inner returns an object inside o. Its faults are o's.
func (o *object) inner(key string, required bool) (in object, ok bool) {
	v := o.value(key)
	if v == nil {
		if required {
			o.fault(key, "an object", "none")
		}
		return in, false
	}
	if json.Unmarshal(v, &in.values) != nil || in.values == nil {
		o.fault(key, "an object", shown(v))
		return in, false
	}
	return in, true
}

func (o *object) take(key string, in *object) {
	for _, f := range in.faults {
		o.fault(key+"."+f.field, f.want, f.got)
	}
}

func (t *requestTraceReader) request(o *object, r *Record) []fault {
	if schema := o.text("schema", MaxSessionBytes); schema != requestTraceSchema {
		o.fault("schema", requestTraceSchema, strconv.Quote(schema))
	}
	at := traced{row: len(t.lowering.rows)}
	in, ok := o.inner("request", true)
	if !ok {
		return o.faults
	}
	id := in.text("request_id", MaxLineBytes)
	if _, known := t.ids[id]; known {
		in.fault("request_id", "one that no other request has", strconv.Quote(id))
	}
	if r.OutputTokens = max(1, in.count("output_tokens")); in.value("output_tokens") == nil {
		in.fault("output_tokens", "an integer ≥ 0", "none")
	}
	start, ok := in.time("request_received_ms", time.Millisecond)
	if !ok {
		in.fault("request_received_ms", "milliseconds ≥ 0", "none")
	}
	took, ok := in.time("total_time_ms", time.Millisecond)
	if end, timed := o.time("event_time_unix_ms", time.Millisecond); !ok && timed {
		took = max(0, end-start)
	}
	r.Offset, at.start, at.end = time.Duration(start), start, int64(later(time.Duration(start), time.Duration(took)))
	if replay, ok := in.inner("replay", true); ok {
		t.replay(&replay, r)
		in.take("replay", &replay)
	}
	o.take("request", &in)
	if context, ok := o.inner("agent_context", false); ok {
		at.session = context.text("session_id", MaxSessionBytes)
		if parent := context.text("parent_session_id", MaxSessionBytes); parent != "" && parent != at.session {
			t.parents[at.session] = parent
		}
		o.take("agent_context", &context)
	}
	if len(o.faults) == 0 {
		t.ids[id] = struct{}{}
		t.requests = append(t.requests, at)
	}
	return o.faults
}

// replay reads the blocks of a prompt. Equal hashes mean equal prompts up to that block.
func (t *requestTraceReader) replay(o *object, r *Record) {
	block := o.length("trace_block_size")
	if o.value("trace_block_size") == nil {
		o.fault("trace_block_size", "an integer ≥ 1", "none")
	}
	if t.lowering.block == 0 {
		t.lowering.block = block
	}
	if block > 0 && block != t.lowering.block {
		o.fault("trace_block_size", fmt.Sprintf("%d, as on the lines before", t.lowering.block), strconv.Itoa(block))
	}
	if r.InputTokens = o.length("input_length"); o.value("input_length") == nil {
		o.fault("input_length", "an integer ≥ 1", "none")
	}
	r.Blocks = o.ids("input_sequence_hashes", nil)
	if want := blocksOf(r.InputTokens, max(1, block)); len(o.faults) == 0 && len(r.Blocks) != want {
		o.fault("input_sequence_hashes", fmt.Sprintf("%d for %d tokens in blocks of %d", want, r.InputTokens, block), strconv.Itoa(len(r.Blocks)))
	}
	for i, hash := range r.Blocks {
		number, known := t.numbers[hash]
		if !known {
			number = uint64(len(t.numbers))
			t.numbers[hash] = number
		}
		r.Blocks[i] = number
	}
}
