package trace

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// requestEnd is a line of a request trace. Times are milliseconds after an instant of 2026.
func requestEnd(id string, start, took, input int, hashes, context string) string {
	return fmt.Sprintf(`{"schema":"dynamo.request.trace.v1","event_type":"request_end","event_time_unix_ms":%d,%s"request":{"request_id":"%s","model":"m",`+
		`"output_tokens":5,"request_received_ms":%d,"total_time_ms":%d,"replay":{"trace_block_size":16,"input_length":%d,"input_sequence_hashes":[%s]}}}`+"\n",
		1790000000000+start+took, context, id, 1790000000000+start, took, input, hashes)
}

func agentContext(session, parent string) string {
	if parent == "" {
		return fmt.Sprintf(`"agent_context":{"session_id":"%s"},`, session)
	}
	return fmt.Sprintf(`"agent_context":{"session_id":"%s","parent_session_id":"%s"},`, session, parent)
}

// tracedAgents has two children: b begins while r0 runs, c after r1. Lines are in the order of their ends.
var tracedAgents = `{"event_type":"request_payload","anything":1}` + "\n" +
	requestEnd("r0", 0, 1000, 20, "900,901", agentContext("a", "")) +
	`{"timestamp":5,"event":` + strings.TrimSpace(requestEnd("b0", 400, 700, 16, "902", agentContext("b", "a"))) + "}\n" +
	`{"schema":"dynamo.request.trace.v1","event_type":"tool_end","event_time_unix_ms":1}` + "\n" +
	requestEnd("r1", 1500, 500, 32, "900,903", agentContext("a", "")) +
	requestEnd("c0", 2200, 300, 16, "902", agentContext("c", "a")) +
	requestEnd("r2", 3000, 100, 32, "900,903", agentContext("a", "")) +
	requestEnd("alone", 50, 9000, 16, "900", "")

func TestRequestTrace(t *testing.T) {
	f, err := openContent(t, tracedAgents, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	want := []Record{
		{InputTokens: 20, Blocks: []uint64{0, 1}, Session: "a", After: []Edge{}},
		{Offset: 50 * ms, InputTokens: 16, Blocks: []uint64{0}},
		{Offset: 400 * ms, InputTokens: 16, Blocks: []uint64{2}, Session: "a", Agent: "b", After: []Edge{}},
		{Offset: 800 * ms, InputTokens: 32, Blocks: []uint64{0, 3}, Session: "a", After: []Edge{{0, 500 * ms}, {2, 400 * ms}}, Floating: true},
		{Offset: time.Second, InputTokens: 16, Blocks: []uint64{2}, Session: "a", Agent: "c", After: []Edge{{3, 200 * ms}}, Floating: true},
		{Offset: 1800 * ms, InputTokens: 32, Blocks: []uint64{0, 3}, Session: "a", After: []Edge{{3, time.Second}, {4, 500 * ms}}, Floating: true},
	}
	for i := range want {
		want[i].Number, want[i].Line, want[i].OutputTokens = i, i+2, 5
	}
	got := read(t, f, 0)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if f.Stats.Format != RequestTrace || f.Stats.BlockTokens != 16 {
		t.Errorf("got %+v", f.Stats)
	}
}

func TestRequestTraceFaults(t *testing.T) {
	ok := requestEnd("r0", 0, 1000, 20, "1,2", "")
	without := func(text string) string { return strings.Replace(ok, text, "", 1) }
	for _, c := range []struct{ content, want string }{
		{ok + ok, `t.jsonl:2: request.request_id: want one that no other request has, got "r0"`},
		{without(`"event_type":"request_end",`), `t.jsonl:1: event_type: want request_end, request_payload, tool_start, tool_end or tool_error, got ""`},
		{strings.Replace(ok, `"request":`, `"asked":`, 1), `t.jsonl:1: request: want an object, got none`},
		{strings.Replace(ok, `"replay":`, `"played":`, 1), `t.jsonl:1: request.replay: want an object, or input_tokens, got none`},
		{without(`"output_tokens":5,`), `t.jsonl:1: request.output_tokens: want an integer ≥ 0, got none`},
		{
			strings.Replace(without(`"request_received_ms":1790000000000,`), "event_time_unix_ms", "event_time", 1),
			`t.jsonl:1: request.request_received_ms: want milliseconds ≥ 0, or event_time_unix_ms, got none`,
		},
		{without(`"trace_block_size":16,`), `t.jsonl:1: request.replay.trace_block_size: want an integer ≥ 1, got none`},
		{without(`"input_length":20,`), `t.jsonl:1: request.replay.input_length: want an integer ≥ 1, got none`},
		{strings.Replace(ok, "[1,2]", "[1,2,3]", 1), `t.jsonl:1: request.replay.input_sequence_hashes: want at most 2 for 20 tokens in blocks of 16, got 3`},
		{ok + strings.Replace(requestEnd("r1", 0, 1, 20, "1", ""), ":16,", ":32,", 1), `t.jsonl:2: request.replay.trace_block_size: want 16, as on the lines before, got 32`},
		{strings.Replace(ok, "trace.v1", "trace.v2", 1) + ok, `t.jsonl:1: schema: want dynamo.request.trace.v1, got "dynamo.request.trace.v2"`},
		{strings.Replace(ok, `"request":`, `"agent_context":{"session_id":7},"request":`, 1), `t.jsonl:1: agent_context.session_id: want a string, got 7`},
	} {
		f, err := openContent(t, c.content, Options{Format: RequestTrace})
		if err == nil {
			t.Errorf("want %s, got none", c.want)
			_ = f.Close()
		} else if err.Error() != c.want {
			t.Errorf("want %s, got %v", c.want, err)
		}
	}
}

// Captures name the parent's trajectory, an uploader leaves a mark, and older ones lack the blocks or the begin.
func TestRequestTraceOfCaptures(t *testing.T) {
	bare := func(id, rest string) string {
		return fmt.Sprintf(`{"schema":"dynamo.request.trace.v1","event_type":"request_end","event_time_unix_ms":1790000002000,`+
			`"request":{"request_id":%q,"output_tokens":5,%s}}`, id, rest) + "\n"
	}
	content := requestEnd("r0", 0, 1000, 20, "1,2", agentContext("a", "")) +
		strings.Replace(requestEnd("r1", 1500, 100, 20, "3,4", agentContext("b", "a")), "parent_session_id", "parent_trajectory_id", 1) +
		bare("r2", `"request_received_ms":1790000001800,"input_tokens":33`) + bare("r3", `"total_time_ms":500,"input_tokens":34`) +
		`{"verification":"trace-s3-uploader"}` + "\n"
	_, all := records(t, content, Options{Format: RequestTrace})
	var got []string
	for _, r := range all {
		got = append(got, fmt.Sprint(r.Session, " ", r.Agent, " ", r.Offset.Milliseconds(), " ", r.InputTokens, " ", len(r.Blocks)))
	}
	want := []string{"a  0 20 2", "a b 500 20 2", "  1500 34 0", "  1800 33 0"}
	if !slices.Equal(got, want) {
		t.Errorf("want %q, got %q", want, got)
	}
}
