package trace

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const agenticStart = `{"schema":"dynamo.agentic_mooncake","version":2,"block_size":16,"hash_id_scope":"local","source":{"format":"x","digest":"y"}}` + "\n"

func agenticRow(id, session, rest string) string {
	return `{"request_id":"` + id + `","play_id":"p","session_id":"` + session + `","model":"m",` + rest + "}\n"
}

// onePlay forks at the end of its first request, and once while it runs, and joins.
var onePlay = agenticStart +
	agenticRow("r0", "p", `"input_length":20,"output_length":5,"hash_ids":[1,2],"not_before_ms":10.5`) +
	agenticRow("r1", "b", `"input_tokens":16,"output_tokens":6,"not_before_ms":0,"dependencies":[`+
		`{"request_id":"r0","trigger":"completion","delay_ms":250,"relation":"spawn"}]`) +
	agenticRow("r2", "c", `"input_length":16,"output_length":null,"not_before_ms":0,"dependencies":[`+
		`{"request_id":"r0","trigger":"dispatch","delay_ms":100,"relation":"spawn"}]`) +
	agenticRow("r3", "b", `"input_length":16,"not_before_ms":900,"dependencies":[{"request_id":"r1","trigger":"dispatch","delay_ms":50,"relation":"sequence"}]`) +
	agenticRow("r4", "p", `"input_length":32,"hash_ids":[1,2],"not_before_ms":0,"dependencies":[`+
		`{"request_id":"r0","trigger":"completion","delay_ms":1,"relation":"sequence"},{"request_id":"r0","trigger":"completion","delay_ms":3,"relation":"replay_barrier"},`+
		`{"request_id":"r3","trigger":"completion","delay_ms":0,"relation":"join"}]`)

func TestAgenticMooncake(t *testing.T) {
	f, err := openContent(t, onePlay, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	want := []Record{
		{Offset: 10*ms + ms/2, InputTokens: 20, OutputTokens: 5, Blocks: []uint64{1, 2}, After: []Edge{}},
		{Offset: 110*ms + ms/2, InputTokens: 16, Agent: "c", After: []Edge{}}, // with the first request, 100 ms later
		{Offset: 260*ms + ms/2, InputTokens: 16, OutputTokens: 6, Agent: "b", After: []Edge{{0, 250 * ms}}, Floating: true},
		{Offset: 900 * ms, InputTokens: 16, Agent: "b", After: []Edge{{0, 300 * ms}}},
		{Offset: 900 * ms, InputTokens: 32, Blocks: []uint64{1, 2}, After: []Edge{{0, 3 * ms}, {3, 0}}, Floating: true},
	}
	for i := range want {
		want[i].Number, want[i].Line, want[i].Session = i, i+2, "p"
	}
	if diff := cmp.Diff(want, read(t, f, 0)); diff != "" {
		t.Error(diff)
	}
	if f.Stats.Format != AgenticMooncake || f.Stats.Span != 900*time.Millisecond {
		t.Errorf("got %+v", f.Stats)
	}
}

// What is written as agentic Mooncake is read back with the same graph.
func TestAgenticMooncakeAgain(t *testing.T) {
	f, err := openContent(t, oneSession, Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := read(t, f, 0)
	content, warnings := written(t, AgenticMooncake, WriterOptions{BlockTokens: 16}, want...)
	if diff := cmp.Diff([]string{"made up hash_ids for 8 of 8 rows: they have none or too few, and agentic_mooncake has one for each block"}, warnings); diff != "" {
		t.Error(diff)
	}
	got := reread(t, content)
	for i := range got {
		got[i].Blocks = got[i].Blocks[:len(want[i].Blocks)]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s\n%s", diff, content)
	}
}

func TestAgenticMooncakeFaults(t *testing.T) {
	first := agenticRow("r0", "p", `"input_length":20,"not_before_ms":0`)
	depends := func(text string) string {
		return agenticStart + first + agenticRow("r1", "p", `"input_length":20,"not_before_ms":0,"dependencies":[`+text+`]`)
	}
	for _, c := range []struct{ content, want string }{
		{first, `t.jsonl:1: header: want {"schema":"dynamo.agentic_mooncake","version":2, …}, got none`},
		{strings.Replace(agenticStart, ":2,", ":1,", 1) + first, `t.jsonl:1: version: want 2, got 1`},
		{strings.Replace(agenticStart, `"block_size":16,`, "", 1) + first, `t.jsonl:1: block_size: want an integer ≥ 1, got none`},
		{agenticStart + first + first, `t.jsonl:3: request_id: want one that no other request has, got "r0", that of request 0`},
		{agenticStart + strings.Replace(first, `"play_id":"p",`, "", 1), `t.jsonl:2: play_id: want a string, got none`},
		{agenticStart + strings.Replace(first, `"input_length":20,`, "", 1), `t.jsonl:2: input_length: want an integer ≥ 1, got none`},
		{agenticStart + strings.Replace(first, `,"not_before_ms":0`, "", 1), `t.jsonl:2: not_before_ms: want milliseconds ≥ 0, got none`},
		{agenticStart + strings.Replace(first, `,"not`, `,"hash_ids":[1,2,3],"not`, 1), `t.jsonl:2: hash_ids: want 2 ids for 20 tokens in blocks of 16, got 3`},
		{depends(`{"request_id":"r9","trigger":"completion"}`), `t.jsonl:3: dependencies[0].request_id: want that of an earlier line, got "r9"`},
		{depends(`{"request_id":"r1","trigger":"completion"}`), `t.jsonl:3: dependencies[0].request_id: want that of an earlier line, got "r1"`},
		{depends(`{"request_id":"r0","trigger":"start"}`), `t.jsonl:3: dependencies[0].trigger: want completion or dispatch, got "start"`},
		{depends(`{"request_id":"r0","trigger":"completion","delay_ms":-1}`), `t.jsonl:3: dependencies[0].delay_ms: want milliseconds ≥ 0, got -1`},
		{depends(`7`), `t.jsonl:3: dependencies[0]: want a JSON object, got "7"`},
		{
			strings.Replace(depends(`{"request_id":"r0","trigger":"completion"}`), `"r1","play_id":"p"`, `"r1","play_id":"q"`, 1),
			`t.jsonl:3: dependencies[0].request_id: want a request of the same play, got "r0"`,
		},
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
