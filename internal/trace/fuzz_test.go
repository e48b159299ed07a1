package trace

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// accepted opens content and, if Open accepts it, compares the streamed rows with Stats.
func accepted(t *testing.T, content []byte, format Format, from int64) {
	acceptedWith(t, content, Options{Format: format}, from)
}

func acceptedWith(t *testing.T, content []byte, o Options, from int64) {
	path := filepath.Join(t.TempDir(), "t")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	o.maxSpool = 1 << 20
	f, err := Open(t.Context(), path, o)
	if err != nil {
		return
	}
	defer f.Close()
	if err := f.Stats.WriteTable(io.Discard); err != nil {
		t.Fatal(err)
	}
	all := read(t, f, 0)
	if len(all) != f.Stats.Requests {
		t.Fatalf("%d rows were streamed, %d counted", len(all), f.Stats.Requests)
	}
	seen := make([]bool, len(all))
	var last time.Duration
	var after []Record
	for _, r := range all {
		if seen[r.Number] || r.Offset < last {
			t.Fatalf("row %d comes twice or at %v after %v", r.Number, r.Offset, last)
		}
		seen[r.Number], last = true, r.Offset
		if r.Offset >= time.Duration(from) {
			after = append(after, r)
		}
	}
	if last != f.Stats.Span {
		t.Fatalf("the last row is at %v, want %v", last, f.Stats.Span)
	}
	if got := read(t, f, time.Duration(from)); !cmp.Equal(got, after) {
		t.Fatalf("from %d: %d rows, want %d", from, len(got), len(after))
	}
}

func FuzzMooncake(f *testing.F) {
	mixed, err := os.ReadFile("testdata/mixed.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{
		string(mixed), threeRows, gzipped(f, threeRows), zstded(f, threeRows), "\xef\xbb\xbf" + threeRows + "\r\n",
		`{"input_length":1e3,"hash_ids":[18446744073709551615,-1]}`, `{"input_length":007}`, `{"session_id":"a\u0000","input_length":1}`,
		`{"timestamp":9000000000000,"timestamp":8.5,"input_length":1}` + "\n" + `{"timestamp":8,"session_id":"a","input_length":16777216}`,
	} {
		f.Add([]byte(s), int64(0))
		f.Add([]byte(s), int64(5_000_000))
	}
	f.Fuzz(func(t *testing.T, content []byte, from int64) { accepted(t, content, Auto, from) })
}

func FuzzAzure(f *testing.F) {
	for _, s := range []string{
		"2023-11-16 18:15:46.6805900,374,44\r\n2023-11-16 18:15:50.9951690,396,109\n", "2024-05-10 00:00:00.009930+00:00,1,2",
		"2023-11-16 18:15:47,1,1\n2023-11-16 18:15:46,1,1", "1970-01-01 00:00:00,1,1\n2254-12-31 23:59:59.999999999,16777216,1",
	} {
		f.Add([]byte(azureHeader+"\n"+s), int64(0))
		f.Add([]byte(azureHeader+"\n"+s), int64(1))
	}
	f.Fuzz(func(t *testing.T, content []byte, from int64) { accepted(t, content, Azure, from) })
}

func FuzzBurstGPT(f *testing.F) {
	for _, s := range []string{
		burstHeader + "\n5,ChatGPT,472,18,490,Conversation log\n45,ChatGPT,1087,0,1087,Conversation log\n118,GPT-4,417,276,693,API log",
		burstSessions + "\r\n19440110.0,1722ac82,43,GPT-4,906,446,1352,Conversation log\n19440110.0,\"a\"\"b\",43,GPT-4,906.0,4e2,1352,x",
		"Timestamp,Request tokens,Response tokens\n2,1,1\n1.5,1,1\n1.5,0,0",
	} {
		f.Add([]byte(s), int64(0))
		f.Add([]byte(s), int64(1e9))
	}
	f.Fuzz(func(t *testing.T, content []byte, from int64) { accepted(t, content, BurstGPT, from) })
}

func FuzzBailian(f *testing.F) {
	for _, s := range []string{
		`{"chat_id":1,"parent_chat_id":-1,"timestamp":0.5,"input_length":20,"output_length":3,"type":"text","turn":1,"hash_ids":[1,2]}` + "\n" +
			`{"chat_id":2,"parent_chat_id":1,"timestamp":5,"input_length":20,"output_length":0,"type":"text","turn":2,"hash_ids":[1,2]}` + "\n" +
			`{"chat_id":3,"parent_chat_id":1,"timestamp":4e0,"input_length":20,"output_length":9,"turn":2}`,
		`{"chat_id":1,"parent_chat_id":1,"timestamp":0,"input_length":1,"output_length":1}`,
	} {
		f.Add([]byte(s), int64(0))
		f.Add([]byte(s), int64(1e9))
	}
	f.Fuzz(func(t *testing.T, content []byte, from int64) {
		accepted(t, content, Bailian, from)
		accepted(t, content, VLLM, from)
	})
}

func FuzzSessions(f *testing.F) {
	for _, s := range []string{forked, sessionsStart + `{"input_length":1,"session_id":"a"}` + "\n" + `{"input_length":1,"session_id":"a","after":[{"row":0,"wait":1e9}]}`} {
		f.Add([]byte(s), int64(0))
		f.Add([]byte(s), int64(600e6))
	}
	f.Fuzz(func(t *testing.T, content []byte, from int64) { accepted(t, content, Sessions, from) })
}

func FuzzWeka(f *testing.F) {
	for _, s := range []string{
		oneSession, oneSession + "\n" + wekaText("u", wekaAgentText("5", `,"duration_ms":-1`, wekaCallText("9e9", 1, "", ""))),
		`{"id":"s","requests":[{"t":1e300,"type":"s","in":1,"hash_ids":null,"api_time":8999999999}]}`,
		`{"hash_id_scope":"global","id":"s","requests":[{"t":0,"type":"s","in":64,"hash_ids":[18446744073709551615],"api_time":8999999999}]}`,
	} {
		f.Add([]byte(s), int64(0))
		f.Add([]byte(s), int64(30e9))
	}
	f.Fuzz(func(t *testing.T, content []byte, from int64) { accepted(t, content, Weka, from) })
}

func FuzzRequestTrace(f *testing.F) {
	for _, s := range []string{
		tracedAgents, requestEnd("x", 0, 5, 16, "1", agentContext("a", "b")) + requestEnd("y", 0, 0, 16, "1", agentContext("b", "a")),
	} {
		f.Add([]byte(s), int64(0))
		f.Add([]byte(s), int64(500e6))
	}
	f.Fuzz(func(t *testing.T, content []byte, from int64) { accepted(t, content, RequestTrace, from) })
}

func FuzzSpans(f *testing.F) {
	file := spansFile(spanText("t", "1", "0", "1", said(question, asked)), spanText("t", "2", "2", "3", said(byID, answerB)))
	for _, s := range []string{
		file, strings.Join(asOTLP(f, file, false), "\n"), strings.Join(asOTLP(f, file, true), "\n"),
		spansFile(spanText("t", "1", "0", "", `"gen_ai.prompt.0.role":"user","gen_ai.prompt.0.content":"a","gen_ai.usage.input_tokens":"5"`)),
	} {
		f.Add([]byte(s), int64(0))
		f.Add([]byte(s), int64(500e6))
	}
	f.Fuzz(func(t *testing.T, content []byte, from int64) { accepted(t, content, Spans, from) })
}

func FuzzTraceLab(f *testing.F) {
	for _, s := range []string{
		roundText("a", 1, 128, 100, "user_message 10", "text 11") + roundText("a", 0, 0, 200, "tool_result 5", "tool_call 7"),
		roundText("a", 0, 64, 16777152, "text 5"),
	} {
		f.Add([]byte(s), int64(0))
		f.Add([]byte(s), int64(500e6))
	}
	f.Fuzz(func(t *testing.T, content []byte, from int64) { accepted(t, content, TraceLab, from) })
}

// Every trace that can be read can be written, and reads back the same.
func FuzzWriter(f *testing.F) {
	mixed, err := os.ReadFile("testdata/mixed.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{string(mixed), threeRows, `{"text_input":"\ud800\u2028<"}`, `{"messages":[{"a":"\u2028"}],"extra":{"a":1e999}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		dir := t.TempDir()
		rows := func(name string, content []byte, block int) (all []Record, stats Stats) {
			path := filepath.Join(dir, name)
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			file, err := Open(t.Context(), path, Options{BlockTokens: block, maxSpool: 1 << 20})
			if err != nil {
				if name == "again" {
					t.Fatalf("%v\n%s", err, content)
				}
				return nil, Stats{}
			}
			defer file.Close()
			all = read(t, file, 0)
			for i := range all {
				all[i].Number, all[i].Line, all[i].Turn = 0, 0, 0 // Mooncake does not keep these
			}
			return all, file.Stats
		}
		want, stats := rows("first", content, 0)
		if want == nil {
			return
		}
		written, _ := written(t, Mooncake, WriterOptions{Untimed: !stats.HasTimestamps}, want...)
		got, _ := rows("again", []byte(written), stats.BlockTokens)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%s\n%s\n%s", diff, content, written)
		}
	})
}

// encoding/json accepts every row that plain accepts, with the same result.
func FuzzPlainRow(f *testing.F) {
	for _, s := range []string{
		`{"timestamp":0,"input_length":6758,"output_length":500,"hash_ids":[0,1]}`, `{"input_length":5,"session_id":"a b","delay":7}`,
		`{ "input_length" : 5 ,	"hash_ids" : [ ] }`, `{"input_length":5,"input_length":6}`, `{"input_length":18446744073709551616}`,
		`{"input_length":5,}`, `{"input_length":05}`, `{"input_length":5}}`, `{"input_length":5,"hash_ids":[1,]}`, `{"input_length":5,"hash_ids":[18446744073709551615]}`,
		`{"timestamp":0.5,"input_length":5,"delay":0.25}`, `{"timestamp":5.,"input_length":5}`, `{"timestamp":00.5,"input_length":5}`,
		`{"timestamp":61.1140000005,"input_length":5,"output_length":3,"hash_ids":[1]}`,
		`{"chat_id":159,"parent_chat_id":-1,"timestamp":61.114,"input_length":521,"output_length":132,"type":"text","turn":2,"hash_ids":[1,2]}`,
		`{"chat_id":1,"parent_chat_id":- 1,"timestamp":1,"input_length":1,"output_length":1}`, `{"chat_id":1,"timestamp":1,"input_length":1,"output_length":1}`,
		`{"row":3,"after":[{"row":0,"wait":0.5},{"wait":1,"row":2}],"agent_id":"a","gap":7,"input_length":5}`, `{"after":[],"input_length":5}`,
		`{"after":[}0],"input_length":1}`, `{"hash_ids":[1,,2],"input_length":5}`, `{"hash_ids":[1,,2],"hash_ids":[],"input_length":5}`,
		`{"timestamp":8999999999999,"input_length":16777216,"output_length":0,"output_length":1}`, `{"input_length":5,"hash_ids":[1],"hash_ids":[]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		for _, d := range []dialect{
			{unit: time.Millisecond},
			{unit: time.Second, lengths: true},
			{unit: time.Second, lengths: true, chats: true},
			{unit: time.Millisecond, graph: true},
		} {
			var plain, full row
			if !d.plain(line, &plain) {
				continue
			}
			if found := d.json(line, &full); len(found) > 0 {
				t.Fatalf("taken by the short way only, as %+v: %s: %v", d, line, found)
			}
			plain.Blocks, full.Blocks = append([]uint64{}, plain.Blocks...), append([]uint64{}, full.Blocks...)
			plain.object, full.object = object{}, object{}
			if diff := cmp.Diff(full, plain, cmp.AllowUnexported(row{}, object{})); diff != "" {
				t.Fatalf("%+v: %s: %s", d, line, diff)
			}
		}
	})
}

func BenchmarkOpen(b *testing.B) {
	for _, name := range []string{"mooncake_conversation.jsonl", "azure_2023_conv.csv"} {
		b.Run(name, func(b *testing.B) {
			path := realTrace(b, name)
			for b.Loop() {
				f, err := Open(b.Context(), path, Options{})
				if err := errors.Join(err, f.Close()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkRows(b *testing.B) {
	f, err := Open(b.Context(), realTrace(b, "mooncake_conversation.jsonl"), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	for b.Loop() {
		if got := len(read(b, f, 0)); got != f.Stats.Requests {
			b.Fatalf("got %d rows, want %d", got, f.Stats.Requests)
		}
	}
}
