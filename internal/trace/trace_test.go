package trace

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Headers of public traces: BurstGPT_1.csv and _2.csv have burstHeader, _3.csv has burstSessions.
const (
	azureHeader   = "TIMESTAMP,ContextTokens,GeneratedTokens"
	burstHeader   = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type"
	burstSessions = "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type"
)

// write creates a file in a new directory and makes that directory the current one, so that errors show a short path.
func write(t testing.TB, name, content string) string {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func open(t testing.TB, content string, o Options) *File {
	t.Helper()
	f, err := Open(t.Context(), write(t, "t.jsonl", content), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// read returns all rows from an offset on. It checks which are the first and the last of their sessions, and leaves that out of them.
func read(t testing.TB, f *File, from time.Duration) []Record {
	t.Helper()
	rows, err := f.Rows(from)
	if err != nil {
		t.Fatal(err)
	}
	var all []Record
	for {
		r, err := rows.Next()
		if errors.Is(err, io.EOF) {
			return withoutEnds(t, all, from <= 0)
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
}

// withoutEnds checks Record.First, if the rows are those of a whole trace, and Record.Last of all rows up to the end of a trace. It clears
// both.
func withoutEnds(t testing.TB, rows []Record, whole bool) []Record {
	t.Helper()
	seen := map[string]bool{"": true}
	for i := range rows {
		r := &rows[i]
		if whole && r.First == seen[r.Session] {
			t.Errorf("row %d of session %q: got First %v", r.Number, r.Session, r.First)
		}
		seen[r.Session], r.First = true, false
	}
	seen = map[string]bool{"": true}
	for i := len(rows) - 1; i >= 0; i-- {
		r := &rows[i]
		if r.Last == seen[r.Session] {
			t.Errorf("row %d of session %q: got Last %v", r.Number, r.Session, r.Last)
		}
		seen[r.Session], r.Last = true, false
	}
	return rows
}

const ms = time.Millisecond

func TestRowsOfEveryShape(t *testing.T) {
	for _, c := range []struct {
		name, content string
		want          []Record
	}{
		{
			"lengths and ids", `{"timestamp": 0, "input_length": 655, "output_length": 52, "hash_ids": [46, 47]}`,
			[]Record{{Line: 1, InputTokens: 655, OutputTokens: 52, Blocks: []uint64{46, 47}}},
		},
		{
			"lengths alone", `{"timestamp":7,"input_length":1,"output_length":1}`,
			[]Record{{Line: 1, Offset: 7 * ms, InputTokens: 1, OutputTokens: 1}},
		},
		{"no output length", `{"timestamp":7,"input_length":5}`, []Record{{Line: 1, Offset: 7 * ms, InputTokens: 5}}},
		{"no ids", `{"timestamp":0,"input_length":5,"hash_ids":[]}`, []Record{{Line: 1, InputTokens: 5}}},
		{
			"nulls", `{"timestamp":0,"input_length":5,"output_length":null,"hash_ids":null,"session_id":null,"text_input":null}`,
			[]Record{{Line: 1, InputTokens: 5}},
		},
		{
			"whole floats", `{"timestamp":10.0,"input_length":5.0,"output_length":6e0}`,
			[]Record{{Line: 1, Offset: 10 * ms, InputTokens: 5, OutputTokens: 6}},
		},
		{
			"ids of 64 bits", `{"input_length":1500,"hash_ids":[18446744073709551615, 9223372036854775808, -1]}`,
			[]Record{{Line: 1, InputTokens: 1500, Blocks: []uint64{1<<64 - 1, 1 << 63, 1<<64 - 1}}},
		},
		{"surplus ids", `{"input_length":512,"hash_ids":[1,2,3]}`, []Record{{Line: 1, InputTokens: 512, Blocks: []uint64{1}}}},
		{"text", `{"text_input":"What is ü?","output_length":20}`, []Record{{Line: 1, Text: "What is ü?", OutputTokens: 20}}},
		{
			"messages", `{"messages": [{"role": "user"}], "tools": [{"a": 1}]}`,
			[]Record{{Line: 1, Messages: []byte(`[{"role": "user"}]`), Tools: []byte(`[{"a": 1}]`)}},
		},
		{"payload", `{"payload": {"prompt": "x"}}`, []Record{{Line: 1, Payload: []byte(`{"prompt": "x"}`)}}},
		{"extra", `{"input_length":1,"extra":{"top_k": 1}}`, []Record{{Line: 1, InputTokens: 1, Extra: []byte(`{"top_k": 1}`)}}},
		{"unknown field", `{"input_length":1,"model":"x"}`, []Record{{Line: 1, InputTokens: 1}}},
		{
			"epoch, unsorted", `{"timestamp":1696000000123,"input_length":1}` + "\n" + `{"timestamp":1696000000100.5,"input_length":2}`,
			[]Record{{Number: 1, Line: 2, InputTokens: 2}, {Line: 1, Offset: 22500 * time.Microsecond, InputTokens: 1}},
		},
		{
			"epoch by both decoders", `{"timestamp":1696000000123,"input_length":1}` + "\n" + `{"timestamp":1696000000123,"text_input":"x"}`,
			[]Record{{Line: 1, InputTokens: 1}, {Number: 1, Line: 2, Text: "x"}},
		},
		{
			"BOM, CRLF, blank lines", "\xef\xbb\xbf\f{\"input_length\":1}\t\r\n\r\n  \n{\"input_length\":2}\r\n\n",
			[]Record{{Line: 1, InputTokens: 1}, {Number: 1, Line: 4, InputTokens: 2}},
		},
		{
			"session", `{"session_id":"a","timestamp":5,"input_length":1}` + "\n" + `{"timestamp":6,"input_length":2}` + "\n" +
				`{"session_id":"a","delay":1500,"input_length":3}` + "\n" + `{"session_id":"a","delay":0.5,"timestamp":7,"input_length":4}`,
			[]Record{
				{Line: 1, Offset: 5 * ms, InputTokens: 1, Session: "a"},
				{Number: 2, Line: 3, Offset: 5 * ms, InputTokens: 3, Session: "a", Delay: 1500 * ms},
				{Number: 1, Line: 2, Offset: 6 * ms, InputTokens: 2},
				{Number: 3, Line: 4, Offset: 7 * ms, InputTokens: 4, Session: "a", Delay: 500 * time.Microsecond},
			},
		},
		{
			"azure 2023", azureHeader + "\r\n2023-11-16 18:15:46.6805900,374,44\r\n2023-11-16 18:15:50.9951690,396,109",
			[]Record{
				{Line: 2, InputTokens: 374, OutputTokens: 44},
				{Number: 1, Line: 3, Offset: 4314579 * time.Microsecond, InputTokens: 396, OutputTokens: 109},
			},
		},
		{
			"azure 2024", azureHeader + "\n2024-05-10 00:00:00.009930+00:00,1,2\n2024-05-10 01:00:00.009931+01:00,3,4\n",
			[]Record{
				{Line: 2, InputTokens: 1, OutputTokens: 2},
				{Number: 1, Line: 3, Offset: time.Microsecond, InputTokens: 3, OutputTokens: 4},
			},
		},
		{
			"burstgpt 1, with a request that failed", burstHeader + "\n5,ChatGPT,472,18,490,Conversation log\n45,ChatGPT,1087,0,1087,Conversation log\n" +
				"118,GPT-4,417,276,693,Conversation log\n",
			[]Record{
				{Line: 2, InputTokens: 472, OutputTokens: 18},
				{Number: 1, Line: 4, Offset: 113 * time.Second, InputTokens: 417, OutputTokens: 276},
			},
		},
		{
			"burstgpt 3", burstSessions + "\r\n19440110.0,1722ac82-0a46,43,GPT-4,906,446,1352,Conversation log\r\n19440161.25,,2,ChatGPT,36.0,29,65,API log\r\n" +
				"19440161.25,\"a,\"\"b\"\"\",2,ChatGPT,0,0.0,0,API log\r\n" + "19440162.0,\"a,\"\"b\"\"\",2,ChatGPT,1,2,3,API log",
			[]Record{
				{Line: 2, InputTokens: 906, OutputTokens: 446, Session: "1722ac82-0a46"},
				{Number: 1, Line: 3, Offset: 51250 * ms, InputTokens: 36, OutputTokens: 29},
				{Number: 2, Line: 5, Offset: 52 * time.Second, InputTokens: 1, OutputTokens: 2, Session: `a,"b"`},
			},
		},
		{
			"burstgpt, columns in another order", "Log Type,Timestamp,Request tokens,Response tokens,Total tokens,Model\nAPI log,0,1,2,3,GPT-4",
			[]Record{{Line: 2, InputTokens: 1, OutputTokens: 2}},
		},
		{
			"bailian, first row without a parent", `{"chat_id":7,"timestamp":1.5,"input_length":5,"output_length":2,"turn":1}`,
			[]Record{{Line: 1, Offset: 1500 * ms, InputTokens: 5, OutputTokens: 2, Session: "7"}},
		},
		{
			"bailian", `{"chat_id": 1, "parent_chat_id": -1, "timestamp": 0.5, "input_length": 20, "output_length": 3, "type": "text", "turn": 1, "hash_ids": [1, 2]}
{"chat_id": 159, "parent_chat_id": 55, "timestamp": 61.114, "input_length": 21, "output_length": 4, "type": "text", "turn": 2, "hash_ids": [1, 3]}
{"chat_id": 9, "parent_chat_id": 1, "timestamp": 61.2, "input_length": 9, "output_length": 0, "type": "text", "turn": 2, "hash_ids": [1]}
{"chat_id": 2, "parent_chat_id": 1, "timestamp": 62, "input_length": 30, "output_length": 5, "type": "search", "turn": 2, "hash_ids": [1, 4]}
{"chat_id": 3, "parent_chat_id": 2, "timestamp": 63, "input_length": 31, "output_length": 6, "type": "te\u0078t", "turn": 3, "hash_ids": [1, 5]}`,
			[]Record{
				{Line: 1, Offset: 500 * ms, InputTokens: 20, OutputTokens: 3, Blocks: []uint64{1, 2}, Session: "1"},
				{Number: 1, Line: 2, Offset: 61114 * ms, InputTokens: 21, OutputTokens: 4, Blocks: []uint64{1, 3}, Session: "159", Turn: 1},
				{Number: 2, Line: 4, Offset: 62 * time.Second, InputTokens: 30, OutputTokens: 5, Blocks: []uint64{1, 4}, Session: "1", Turn: 1},
				{Number: 3, Line: 5, Offset: 63 * time.Second, InputTokens: 31, OutputTokens: 6, Blocks: []uint64{1, 5}, Session: "1", Turn: 2},
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, read(t, open(t, c.content, Options{}), 0)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// lineOf returns a row with as many ids as its tokens have blocks of the given size.
func lineOf(tokens, size int) string {
	ids := make([]string, blocksOf(tokens, size))
	for i := range ids {
		ids[i] = fmt.Sprint(i)
	}
	return fmt.Sprintf(`{"input_length":%d,"hash_ids":[%s]}`, tokens, strings.Join(ids, ","))
}

func TestBlockSize(t *testing.T) {
	for _, c := range []struct {
		name    string
		lines   []string
		named   int
		want    int
		surplus int
	}{
		{"512", []string{lineOf(6758, 512), lineOf(700, 512)}, 0, 512, 0},
		{"16", []string{lineOf(6758, 16), lineOf(700, 16)}, 0, 16, 0},
		{"64", []string{lineOf(6758, 64)}, 0, 64, 0},
		{"1024", []string{lineOf(2000, 1024)}, 0, 1024, 0},
		{"tie, so the first", []string{lineOf(16, 16), lineOf(1, 16)}, 0, 512, 0},
		{"most rows", []string{lineOf(6758, 512), lineOf(512, 16), lineOf(6000, 512)}, 0, 512, 1},
		{"named", []string{lineOf(6758, 16)}, 100, 100, 1},
		{"no usual size", slices.Repeat([]string{lineOf(1000, 100)}, leastRows), 0, 100, 0},
		{"several sizes, so the roundest", slices.Repeat([]string{lineOf(1000, 103), lineOf(700, 103), lineOf(824, 103)}, 3), 0, 110, 0},
		{"too few rows", slices.Repeat([]string{lineOf(1000, 100)}, leastRows-1), 0, 512, leastRows - 1},
		{"nothing to tell it by", []string{`{"input_length":5}`}, 0, 512, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := open(t, strings.Join(c.lines, "\n"), Options{BlockTokens: c.named})
			if f.Stats.BlockTokens != c.want || f.Stats.SurplusRows != c.surplus {
				t.Errorf("got blocks of %d, %d rows with a surplus, want %d, %d", f.Stats.BlockTokens, f.Stats.SurplusRows, c.want, c.surplus)
			}
		})
	}
}

// Whatever the size of its blocks, a trace is read without a surplus and with all of its ids.
func TestEveryBlockSizeFits(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		size := 1 + rng.IntN(2048)
		lines := make([]string, leastRows+rng.IntN(30))
		for i := range lines {
			lines[i] = lineOf(1+rng.IntN(20*size), size)
		}
		f := open(t, strings.Join(lines, "\n"), Options{})
		if f.Stats.SurplusRows != 0 {
			t.Errorf("blocks of %d: got %d of %d rows with a surplus, read as blocks of %d", size, f.Stats.SurplusRows, len(lines), f.Stats.BlockTokens)
		}
	}
}

// Short rows fit every block size: then the format's own size wins.
func TestBlockSizeOfTheFormat(t *testing.T) {
	const row = `{"chat_id":1,"parent_chat_id":-1,"timestamp":1,"input_length":5,"output_length":1,"hash_ids":[1]}`
	for format, want := range map[Format]int{Bailian: 16, VLLM: 16, Mooncake: 512} {
		if f := open(t, row, Options{Format: format}); f.Stats.BlockTokens != want {
			t.Errorf("%s: got blocks of %d, want %d", format, f.Stats.BlockTokens, want)
		}
	}
}

func TestStartInTheMiddle(t *testing.T) {
	f := open(t, `{"timestamp":0,"input_length":1}`+"\n"+`{"timestamp":5,"input_length":2}`+"\n"+`{"timestamp":9,"input_length":3}`, Options{})
	for from, want := range map[time.Duration]int{-1: 1, 0: 1, 1: 2, 5 * ms: 2, 5*ms + 1: 3, 9 * ms: 3, 9*ms + 1: 0, 1<<63 - 1: 0} {
		got := 0
		if rows := read(t, f, from); len(rows) > 0 {
			got = rows[0].InputTokens
		}
		if got != want {
			t.Errorf("from %v: the first row has %d tokens, want %d", from, got, want)
		}
	}
}

func TestWithoutTimestamps(t *testing.T) {
	f := open(t, `{"input_length":3}`+"\n"+`{"input_length":1}`, Options{})
	if f.Stats.HasTimestamps || f.Stats.Instants != 0 || f.Stats.Rate != 0 {
		t.Errorf("got %+v, want no timestamps and nothing of time", f.Stats)
	}
	if got := read(t, f, 0); got[0].InputTokens != 3 || got[1].Offset != 0 {
		t.Errorf("got %v, want the file's order at offset 0", got)
	}
}

func TestReaderOfRealTraces(t *testing.T) {
	mooncake, azure := realTrace(t, "mooncake_conversation.jsonl"), realTrace(t, "azure_2023_conv.csv")
	for _, c := range []struct {
		path string
		last Record
	}{
		{mooncake, Record{Number: 12030, Line: 12031, Offset: 3536999 * ms}},
		{azure, Record{Number: 19365, Line: 19367, Offset: 3501721937 * time.Microsecond, InputTokens: 197, OutputTokens: 183}},
	} {
		f, err := Open(t.Context(), c.path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		all := read(t, f, 0)
		if len(all) != f.Stats.Requests {
			t.Fatalf("%s: %d rows, want %d", c.path, len(all), f.Stats.Requests)
		}
		last := all[len(all)-1]
		if last.Number != c.last.Number || last.Line != c.last.Line || last.Offset != c.last.Offset {
			t.Errorf("%s: the last row is %v, want %v", c.path, last, c.last)
		}
		// The rows after a seek are the same as in a full read.
		for i := 0; i < len(all); i += 997 {
			first := i
			for first > 0 && all[first-1].Offset == all[i].Offset {
				first--
			}
			rows, err := f.Rows(all[i].Offset)
			if err != nil {
				t.Fatal(err)
			}
			got, err := rows.Next()
			if diff := cmp.Diff(all[first], got); diff != "" || err != nil {
				t.Fatalf("%s from %v: %v %s", c.path, all[i].Offset, err, diff)
			}
		}
	}
}

func realTrace(t testing.TB, name string) string {
	t.Helper()
	dir := os.Getenv("REPLAYD_TRACES")
	if dir == "" {
		t.Skip("REPLAYD_TRACES names no directory with the public traces")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, name)
}
