package trace

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// wekaTotals are the figures of one session of kv-cache-tester, or of all: what a right reader finds.
type wekaTotals struct {
	requests, agents      int
	input, output         int64
	longest               int
	blocks, hits          int64
	ratio                 float64
	sessions, blockTokens int
}

// The twelve public sessions have these figures. Hits: leading ids that came before in the session, in an endless cache.
func TestWekaFigures(t *testing.T) {
	folder := realTrace(t, "weka")
	if _, err := os.Stat(folder); err != nil {
		t.Skip("the directory of the public traces has no folder weka: ", err)
	}
	for name, want := range map[string]wekaTotals{
		"trace_0014.json": {123, 1, 12621267, 59028, 157760, 197148, 187788, 0.952237, 1, 64},
		"trace_0066.json": {6, 0, 793833, 1295, 146463, 12400, 10112, 0.815245, 1, 64},
		"trace_0274.json": {105, 3, 5990912, 48868, 110524, 93558, 89129, 0.952152, 1, 64},
		"trace_0277.json": {53, 4, 2576410, 31862, 92614, 40230, 35139, 0.872880, 1, 64},
		"trace_0291.json": {32, 2, 2254119, 19504, 101059, 35209, 31603, 0.897287, 1, 64},
		"trace_0348.json": {64, 0, 4252902, 46569, 103318, 66421, 64075, 0.964236, 1, 64},
		"trace_0504.json": {3, 0, 33739, 337, 11306, 525, 343, 0.650642, 1, 64},
		"trace_0517.json": {14, 0, 3308073, 1645, 243658, 51684, 47876, 0.926238, 1, 64},
		"trace_0559.json": {40, 0, 1780266, 17019, 81119, 27797, 26529, 0.953709, 1, 64},
		"trace_0620.json": {6, 0, 280044, 6680, 59249, 4372, 3447, 0.787762, 1, 64},
		"trace_0624.json": {23, 0, 752963, 13166, 40171, 11754, 11127, 0.945768, 1, 64},
		"trace_0722.json": {24, 0, 1168166, 21551, 55709, 18241, 17366, 0.951426, 1, 64},
		".":               {493, 10, 35812694, 267524, 243658, 559339, 524534, 0.937382, 12, 64},
	} {
		if testing.Short() && name == "." { // as many rows as the others have together
			continue
		}
		f, err := Open(t.Context(), filepath.Join(folder, name), Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		s := f.Stats
		got := wekaTotals{
			s.Requests, s.Agents, s.Input.Sum, s.Output.Sum, int(s.Input.Max), s.Prefix.Blocks, s.Prefix.HitBlocks,
			math.Round(s.Prefix.HitTokenRatio*1e6) / 1e6, s.Sessions, s.BlockTokens,
		}
		if got != want {
			t.Errorf("%s: want %+v, got %+v", name, want, got)
		}
		again, _ := written(t, Sessions, WriterOptions{BlockTokens: 64}, read(t, f, 0)...)
		if diff := cmp.Diff(read(t, f, 0), reread(t, again)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// wekaCallText is a request of a session.
func wekaCallText(at string, in int, ids string, more string) string {
	return fmt.Sprintf(`{"t":%s,"type":"n","in":%d,"out":5,"hash_ids":[%s]%s}`, at, in, ids, more)
}

func wekaText(id string, requests ...string) string {
	return fmt.Sprintf(`{"id":"%s","block_size":16,"hash_id_scope":"local","tool_tokens":20,"system_tokens":14,"requests":[%s]}`,
		id, strings.Join(requests, ","))
}

func wekaAgentText(at, more string, requests ...string) string {
	return fmt.Sprintf(`{"t":%s,"type":"subagent","agent_id":"a%s","subagent_type":"Explore","tool_tokens":16,"system_tokens":0%s,"requests":[%s]}`,
		at, at, more, strings.Join(requests, ","))
}

// oneSession has two sub-agents. The first returns to the parent before its next request. The second is launched and runs beside.
var oneSession = wekaText("s",
	wekaCallText("0.0", 40, "1,2", `,"api_time":2.5`),
	wekaAgentText("30", `,"duration_ms":27000`, wekaCallText("0.0", 20, "9", `,"api_time":4`), wekaCallText("10", 40, "9,10", `,"api_time":6`)),
	wekaAgentText("3.0", "", wekaCallText("0.0", 20, "9", `,"api_time":1`), wekaCallText("100", 40, "9,11", `,"api_time":1`)),
	wekaCallText("40", 60, "1,2,3", `,"api_time":1`),
	wekaCallText("40.5", 60, "1,2,3", ""),
	wekaCallText("200", 70, "1,2,3,4", ""),
)

func TestWekaGraph(t *testing.T) {
	s := time.Second
	want := []Record{
		{Offset: 0, Blocks: []uint64{0, 1}, After: []Edge{}},
		{Offset: s / 2, Blocks: []uint64{2}, Agent: "a30", After: []Edge{{0, s / 2}}},
		{Offset: s / 2, Blocks: []uint64{2}, Agent: "a3.0", After: []Edge{{0, s / 2}}},
		{Offset: 6*s + s/2, Blocks: []uint64{2, 3}, Agent: "a30", After: []Edge{{1, 6 * s}}},
		{Offset: 37*s + s/2, Blocks: []uint64{0, 1, 5}, After: []Edge{{0, 37*s + s/2}, {3, 21 * s}}},
		{Offset: 37*s + s/2, Blocks: []uint64{0, 1, 5}, After: []Edge{{4, 0}}}, // it overlaps the request before
		{Offset: 99*s + s/2, Blocks: []uint64{2, 4}, Agent: "a3.0", After: []Edge{{2, 99 * s}}},
		{Offset: 197 * s, Blocks: []uint64{0, 1, 5, 6}, After: []Edge{{5, 159*s + s/2}, {6, 96 * s}}},
	}
	inputs := []int{40, 20, 20, 40, 60, 60, 40, 70}
	for i := range want {
		r := &want[i]
		r.Number, r.Line, r.InputTokens, r.OutputTokens, r.Session, r.Floating = i, i+2, inputs[i], 5, "s", i > 0
	}
	f, err := openContent(t, oneSession, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if diff := cmp.Diff(want, read(t, f, 0)); diff != "" {
		t.Error(diff)
	}
	if f.Stats.Format != Weka || f.Stats.Bytes != int64(len(oneSession)) || f.Stats.Agents != 2 {
		t.Errorf("want the figures of the source, got %+v", f.Stats)
	}
}

// The same session with absolute times, as SemiAnalysis publishes them, indented, or in a folder has the same rows.
func TestWekaForms(t *testing.T) {
	f, err := openContent(t, oneSession, Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := read(t, f, 0)
	absolute := oneSession
	for _, change := range [][2]string{
		{`"t":30,`, `"t":3,`}, // a marker no later than the requests
		{`{"t":0.0,"type":"n","in":20,"out":5,"hash_ids":[9],"api_time":4}`, `{"t":3,"type":"n","in":20,"out":5,"hash_ids":[9],"api_time":4}`},
		{`{"t":10,`, `{"t":13,`},
		{`{"t":100,`, `{"t":103,`},
		{`{"t":0.0,"type":"n","in":20,"out":5,"hash_ids":[9],"api_time":1}`, `{"t":3,"type":"n","in":20,"out":5,"hash_ids":[9],"api_time":1}`},
	} {
		if !strings.Contains(absolute, change[0]) {
			t.Fatalf("%s is not in %s", change[0], absolute)
		}
		absolute = strings.Replace(absolute, change[0], change[1], 1)
	}
	for name, content := range map[string]string{
		"absolute": absolute, "indented": strings.ReplaceAll(oneSession, `,"`, ",\r\n \""), "compressed": gzipped(t, oneSession),
	} {
		f, err := openContent(t, content, Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(want, read(t, f, 0)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		_ = f.Close()
	}
}

// A folder is read by name. Sessions share no block, unless their prefixes are shared: then the blocks of the tools and the
// system prompt of all are the same, and those of the sub-agents of one type.
func TestWekaFolder(t *testing.T) {
	dir := t.TempDir()
	two := wekaText("u", wekaCallText("0", 52, "1,5,6", "")) + "\n" +
		wekaText("v", wekaCallText("0", 52, "7,8,9", ""), wekaAgentText("0", "", wekaCallText("0", 32, "1,2", ""))) + "\n"
	for name, content := range map[string]string{"b.jsonl": two, "a.json.gz": gzipped(t, oneSession), "README.md": "no session"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	blocks := func(o Options) (firsts [][]uint64, hits int64) {
		f, err := Open(t.Context(), dir, o)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for _, r := range read(t, f, 0) {
			if r.Offset == 0 {
				firsts = append(firsts, r.Blocks)
			}
		}
		return firsts, f.Stats.Prefix.HitBlocks
	}
	got, _ := blocks(Options{})
	if diff := cmp.Diff([][]uint64{{0, 1}, {7, 8, 9}, {10, 11, 12}, {13, 14}}, got); diff != "" {
		t.Error(diff)
	}
	got, _ = blocks(Options{SharedPrefix: true})
	if diff := cmp.Diff([][]uint64{{0, 1}, {0, 1, 7}, {0, 1, 8}, {2, 9}}, got); diff != "" {
		t.Error(diff)
	}
	if _, err := Open(t.Context(), dir, Options{Format: Azure}); err == nil || err.Error() != dir+": want a file, got a directory" {
		t.Errorf("got %v", err)
	}
}

func TestWekaFaults(t *testing.T) {
	ok := wekaCallText("0", 40, "1,2", "")
	for _, c := range []struct{ content, want string }{
		{`{"block_size":16,"requests":[` + ok + `]}`, `t.jsonl:1: id: want a string, got none`},
		{wekaText("s"), `t.jsonl:1: requests: want at least one, got none`},
		{`{"id":"s","requests":7}`, `t.jsonl:1: requests: want a list of requests, got 7`},
		{`{"id":"s","hash_id_scope":"local","block_size":16}`, `t.jsonl:1: requests: want a list of requests, got none`},
		{`{"id":"s","models":["m"],"block_size":16}`, `t.jsonl:1: requests: want a list of requests, got none`},
		{"{\n  \"id\": \"s\",\n  \"tool_tokens\": 5\n}\n", `t.jsonl: requests: want a list of requests, got none`},
		{wekaText("s", ok, `{"type":"n","in":5}`), `t.jsonl:1: requests[1].t: want seconds ≥ 0, got none`},
		{wekaText("s", `{"t":-1,"type":"n","in":5}`), `t.jsonl:1: requests[0].t: want seconds ≥ 0, got -1`},
		{wekaText("s", `{"t":1,"type":"x","in":5}`), `t.jsonl:1: requests[0].type: want n, s or subagent, got "x"`},
		{wekaText("s", `{"t":1,"type":"n"}`), `t.jsonl:1: requests[0].in: want an integer ≥ 1, got none`},
		{wekaText("s", `{"t":1,"type":"n","in":5,"out":"a"}`), `t.jsonl:1: requests[0].out: want an integer ≥ 0, got "a"`},
		{wekaText("s", wekaCallText("0", 40, "1,2,3,4", "")), `t.jsonl:1: requests[0].hash_ids: want at most 3 ids for 40 tokens in blocks of 16, got 4`},
		{wekaText("s", wekaCallText("0", 40, `1,false`, "")), `t.jsonl:1: requests[0].hash_ids[1]: want a number or a text, got false`},
		{wekaText("s", wekaCallText("5", 5, "", ""), wekaCallText("4.5", 5, "", "")), `t.jsonl:1: requests[1].t: want ≥ 5, that of the request before, got 4.5`},
		{wekaText("s", wekaAgentText("5", "", wekaAgentText("5", ""))), `t.jsonl:1: requests[0].requests[0].type: want n or s in a sub-agent, got "subagent"`},
		{wekaText("s", ok) + "\n" + wekaText("s", ok), `t.jsonl:2: id: want one that no other session has, got "s", that of t.jsonl:1`},
		{wekaText("s", ok) + "\n" + strings.Replace(wekaText("u", ok), ":16", ":20", 1), `t.jsonl:2: block_size: want 16, as in the session before, got 20`},
		{strings.Replace(wekaText("s", ok), "local", "file", 1), `t.jsonl:1: hash_id_scope: want local or global, got "file"`},
		{wekaText("s", ok) + "\n" + `{"id":"t","requests":[}`, `t.jsonl:2: session: want a JSON object, got "{\"id\":\"t\",\"requests\":[}" (invalid character '}' looking for beginning of value)`},
		{"{\"requests\":[],\n\"id\":\"s\"", "t.jsonl: session: want a JSON object, got \"{\\\"requests\\\":[],\\n\\\"id\\\":\\\"s\\\"\\n\" (unexpected end of JSON input)"},
	} {
		f, err := openContent(t, c.content, Options{})
		if err == nil {
			t.Errorf("want %s, got none", c.want)
			_ = f.Close()
		} else if err.Error() != c.want {
			t.Errorf("want %s, got %v", c.want, err)
		}
	}
}

// Lists of elements without end, good or bad, are refused, and take little memory beside the text.
func TestListsAreBounded(t *testing.T) {
	call := wekaCallText("0", 5, "", "")
	repeat := func(element string, n int) string { return strings.Repeat(element+",", n-1) + element }
	for name, c := range map[string]struct{ content, want string }{
		"requests":          {wekaText("s", repeat(call, maxWekaCalls+1)), `t.jsonl:1: requests: want at most 65536, got more`},
		"bad requests":      {wekaText("s", repeat("{}", 1<<20)), `t.jsonl:1: requests: want at most 65536, got more`},
		"of sub-agents":     {wekaText("s", wekaAgentText("0", "", repeat(call, maxWekaCalls-2)), wekaAgentText("0", "", call)), `t.jsonl:1: requests[1].requests: want at most 0, got more`},
		"parents":           {sessionsStart + `{"row":0,"timestamp":0,"input_length":5,"output_length":1,"after":[` + repeat("{}", 1<<20) + "]}", `t.jsonl:2: after: want at most 1024, got more`},
		"spans":             {spansFile(repeat("{}", 1<<20)), `t.jsonl:1: spans: want at most 262144, got more`},
		"attributes":        {spansFile(`{"attributes":[` + repeat("{}", maxAttributes+1) + "]}"), `t.jsonl:1: spans[0].attributes: want at most 65536, got more`},
		"bad attributes":    {spansFile(`{"attributes":[` + repeat("{}", maxAttributes) + "]}"), "t.jsonl: 1000 errors in all, the first 20 are shown"},
		"more that are bad": {wekaText("s", repeat("{}", 1000)), "t.jsonl: 1000 errors in all, the first 20 are shown"},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := openContent(t, c.content, Options{})
		runtime.ReadMemStats(&after)
		if err == nil || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%s: want %s, got %.200v", name, c.want, err)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 160<<20 {
			t.Errorf("%s: %d bytes take %d MiB", name, len(c.content), took>>20)
		}
	}
}

// guidellm reads requests without a type: they are requests.
func TestWekaRequestsWithoutType(t *testing.T) {
	f, err := openContent(t, `{"id":"conv0","requests":[{"t":0,"in":10,"out":5,"hash_ids":[]}]}`, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if rows := read(t, f, 0); len(rows) != 1 || rows[0].InputTokens != 10 || rows[0].OutputTokens != 5 {
		t.Errorf("want one row of 10 and 5 tokens, got %+v", rows)
	}
}

// Files of texts are no traces. The error says what reads them.
func TestTextsAreNoTraces(t *testing.T) {
	for content, kind := range map[string]string{
		`{"session_id":"a","turns":[{"text":"What is it?"},{"text":"And why?"}]}`: "multi_turn",
		`{"text":"What is it?","output_length":5}`:                                "single_turn",
		`{"texts":["a","b"],"timestamp":5}`:                                       "single_turn",
		`{"prompt":"What is it?","output_tokens":5}`:                              "single_turn",
		`[{"id":"1","conversations":[{"from":"human","value":"Hello!"}]}]`:        "sharegpt",
		"[\n  {\n    \"id\": \"1\",\n    \"conversations\": []\n  }\n]":           "sharegpt",
	} {
		_, err := openContent(t, content, Options{})
		want := "t.jsonl:1: format: want a trace, got texts: --input-file reads them, with --custom-dataset-type " + kind +
			", and so does dataset.path"
		if err == nil || err.Error() != want {
			t.Errorf("%s: want %s, got %v", content, want, err)
		}
	}
}

// Formats that are recognized and not read are named.
func TestUnreadFormats(t *testing.T) {
	for content, name := range map[string]string{
		`{"captureData":{"endpointInput":{}},"eventMetadata":{}}`:                               "SageMaker's data capture (captureData)",
		`{"session_id":"s","turns":[{"messages":[{"role":"user","forks":[]}]}]}`:                "AIPerf's dag_jsonl (turns)",
		`{"schema":"dynamo.agentic_mooncake","version":2,"block_size":16}`:                      "Dynamo's agentic Mooncake (schema)",
		`{"timestamp":5,"event":{"schema":"dynamo.agent.trace.v1","event_type":"request_end"}}`: "Dynamo's agent trace (schema)",
		`{"request_id":"r0","play_id":"p","session_id":"p","input_length":20}`:                  "Dynamo's agentic Mooncake (play_id)",
	} {
		_, err := openContent(t, content, Options{})
		if want := "t.jsonl:1: format: want a format that replayd reads, got " + name + ", which it does not"; err == nil || err.Error() != want {
			t.Errorf("want %s, got %v", want, err)
		}
	}
}
