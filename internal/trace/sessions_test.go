package trace

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"replayd/internal/fault"
)

const sessionsStart = `{"schema":"replayd.sessions.v1","block_size":16}` + "\n"

// forked is a session that forks and joins: 0 → 1 and 0 → 2 (a sub-agent), then 1 and 2 → 3.
const forked = sessionsStart +
	`{"row":0,"timestamp":0,"input_length":20,"output_length":5,"hash_ids":[1],"session_id":"s","after":[]}` + "\n" +
	`{"row":1,"input_length":40,"output_length":5,"hash_ids":[1,2],"session_id":"s","after":[{"row":0,"wait":500}]}` + "\n" +
	`{"row":2,"input_length":16,"output_length":5,"hash_ids":[7],"session_id":"s","agent_id":"a1","after":[{"row":0,"wait":700.5}]}` + "\n" +
	`{"row":3,"timestamp":100,"input_length":56,"output_length":5,"hash_ids":[1,2,3],"session_id":"s","after":[{"row":1},{"row":2,"wait":9}]}` + "\n"

func openContent(t testing.TB, content string, o Options) (*File, error) {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile("t.jsonl", []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return Open(t.Context(), "t.jsonl", o)
}

func TestSessionsRows(t *testing.T) {
	content := strings.Replace(forked, `3,"timestamp":100`, `3,"timestamp":800`, 1)
	f, err := openContent(t, content, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	want := []Record{
		{Line: 2, InputTokens: 20, OutputTokens: 5, Blocks: []uint64{1}, Session: "s", After: []Edge{}},
		{
			Number: 1, Line: 3, Offset: 500 * ms, InputTokens: 40, OutputTokens: 5, Blocks: []uint64{1, 2}, Session: "s",
			After: []Edge{{0, 500 * ms}}, Floating: true,
		},
		{
			Number: 2, Line: 4, Offset: 700*ms + ms/2, InputTokens: 16, OutputTokens: 5, Blocks: []uint64{7}, Session: "s", Agent: "a1",
			After: []Edge{{0, 700*ms + ms/2}}, Floating: true,
		},
		{
			Number: 3, Line: 5, Offset: 800 * ms, InputTokens: 56, OutputTokens: 5, Blocks: []uint64{1, 2, 3}, Session: "s",
			After: []Edge{{1, 0}, {2, 9 * ms}},
		},
	}
	if diff := cmp.Diff(want, read(t, f, 0)); diff != "" {
		t.Error(diff)
	}
	if f.Stats.Edges != 4 || f.Stats.Sessions != 1 || f.Stats.BlockTokens != 16 || f.Stats.Prefix.HitBlocks != 3 {
		t.Errorf("want 4 edges in a session, blocks of 16 and 3 hits, got %+v", f.Stats)
	}
	again, _ := written(t, Sessions, WriterOptions{BlockTokens: 16}, want...)
	if diff := cmp.Diff(want, reread(t, again)); diff != "" {
		t.Error(diff)
	}
}

func reread(t testing.TB, content string) []Record {
	t.Helper()
	f, err := openContent(t, content, Options{})
	if err != nil {
		t.Fatalf("%v\n%s", err, content)
	}
	defer f.Close()
	return read(t, f, 0)
}

func TestSessionsFaults(t *testing.T) {
	row := func(number int, rest string) string {
		return fmt.Sprintf(`{"row":%d,"input_length":20,%s}`, number, rest)
	}
	first := row(0, `"timestamp":5,"session_id":"s","after":[]`)
	for _, c := range []struct{ rows, want string }{
		{row(1, `"timestamp":5`), `t.jsonl:2: row: want 0, its place in the file from 0, got 1`},
		{first + "\n" + row(1, `"session_id":"s","after":[{"row":1}]`), `t.jsonl:3: after[0].row: want an earlier row than 1, the row's own, got 1`},
		{first + "\n" + row(1, `"session_id":"u","after":[{"row":0}]`), `t.jsonl:3: after[0].row: want a row of the same session, got 0, that of line 2`},
		{first + "\n" + row(1, `"session_id":"s","after":[{"row":0},{"row":0}]`), `t.jsonl:3: after[1].row: want each parent once, got 0 again`},
		{first + "\n" + row(1, `"after":[{"row":0}]`), `t.jsonl:3: session_id: want one, as the row has after, got none`},
		{first + "\n" + row(1, `"session_id":"s","after":[{"wait":1}]`), `t.jsonl:3: after[0].row: want the number of an earlier row, got none`},
		{first + "\n" + row(1, `"session_id":"s","after":[{"row":0,"wait":-1}]`), `t.jsonl:3: after[0].wait: want milliseconds ≥ 0, got -1`},
		{
			first + "\n" + row(1, `"session_id":"s","after":[{"row":0,"wait":9000000000000}]`),
			`t.jsonl:3: after[0].wait: want an instant ≤ 9000000000000, got a later one`,
		},
		{first + "\n" + row(1, `"session_id":"s","after":{"row":0}`), `t.jsonl:3: after: want a list of {"row": …, "wait": …}, got {"row":0}`},
		{first + "\n" + row(1, `"session_id":"s","after":[]`), `t.jsonl:3: timestamp: want milliseconds, as on line 2, got none`},
		{first + "\n" + row(1, `"timestamp":5,"hash_ids":[1,2,3]`), `t.jsonl:3: hash_ids: want 2 ids for 20 tokens in blocks of 16, got 3`},
		{row(0, `"timestamp":5,"after":[`+strings.Repeat(`{"row":0},`, MaxParents)+`{"row":0}]`), `t.jsonl:2: after: want at most 1024, got more`},
		{row(0, `"timestamp":5,"agent_id":7`), `t.jsonl:2: agent_id: want a string, got 7`},
	} {
		f, err := openContent(t, sessionsStart+c.rows+"\n", Options{Strict: true})
		if err == nil {
			t.Errorf("want %s, got none", c.want)
			_ = f.Close()
			continue
		}
		if err.Error() != c.want {
			t.Errorf("want %s, got %v", c.want, err)
		}
	}
	for content, want := range map[string]string{
		`{"schema":"replayd.sessions.v2"}` + "\n" + first: `t.jsonl:1: schema: want replayd.sessions.v1, got "replayd.sessions.v2"`,
		first: `t.jsonl:1: header: want {"schema":"replayd.sessions.v1", …}, got "{\"row\":0,\"input_length\":20,\"timestamp\":5"…`,
	} {
		if _, err := openContent(t, content, Options{Format: Sessions}); err == nil || err.Error() != want {
			t.Errorf("want %s, got %v", want, err)
		}
	}
}

// The published schema has exactly the fields that the decoder knows, and the writer's.
func TestSessionsSchema(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/sessions.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Defs map[string]struct{ Properties map[string]any } `json:"$defs"`
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	fields := schema.Defs["row"].Properties
	sessions := dialect{unit: time.Millisecond, graph: true}
	for field := range fields {
		found := sessions.decode([]byte(`{"`+field+`":true}`), &row{})
		if !slices.ContainsFunc(found, func(f fault.Fault) bool { return f.Key == field }) {
			t.Errorf("%s: want an error of the decoder for a wrong value, got %v", field, found)
		}
	}
	rows := append(slices.Clone(shapes), randomGraphs(rand.New(rand.NewPCG(1, 1)), 20)...)
	content, _ := written(t, Sessions, WriterOptions{BlockTokens: 16}, rows...)
	for i, line := range strings.Split(strings.TrimSpace(content), "\n") {
		values := map[string]json.RawMessage{}
		if err := json.Unmarshal([]byte(line), &values); err != nil {
			t.Fatal(err)
		}
		of := "row"
		if i == 0 {
			of = "header"
		}
		for key := range values {
			if _, known := schema.Defs[of].Properties[key]; !known {
				t.Errorf("%s: the schema of a %s lacks it", key, of)
			}
		}
	}
}

// randomGraphs returns rows of several sessions in due order, each with random parents.
func randomGraphs(r *rand.Rand, rows int) []Record {
	var all []Record
	bySession := map[string][]int{}
	for len(all) < rows {
		n := len(all)
		rec := Record{Number: n, InputTokens: 1 + r.IntN(90), OutputTokens: r.IntN(9), Session: fmt.Sprint("s", r.IntN(4)), After: []Edge{}}
		for range rec.InputTokens / 16 {
			rec.Blocks = append(rec.Blocks, r.Uint64())
		}
		for _, p := range bySession[rec.Session] {
			if r.IntN(4) == 0 {
				rec.After = append(rec.After, Edge{p, time.Duration(r.Int64N(int64(time.Second)))})
			}
		}
		var earliest time.Duration
		for _, e := range rec.After {
			earliest = max(earliest, all[e.Row].Offset+e.Wait)
		}
		if rec.Floating = len(rec.After) > 0 && r.IntN(3) > 0; rec.Floating {
			rec.Offset = earliest
		} else {
			rec.Offset = time.Duration(r.Int64N(int64(2 * time.Second)))
		}
		if r.IntN(5) == 0 {
			rec.Agent = "agent"
		}
		bySession[rec.Session] = append(bySession[rec.Session], n)
		all = append(all, rec)
	}
	return all
}

// Any graph of at most Window rows is read back as it was written, from any instant, in due order.
func TestSessionsRoundTrip(t *testing.T) {
	for seed := range uint64(50) {
		want := randomGraphs(rand.New(rand.NewPCG(seed, 1)), 60)
		content, warnings := written(t, Sessions, WriterOptions{BlockTokens: 16}, want...)
		if len(warnings) > 0 {
			t.Fatal(warnings)
		}
		got := reread(t, content)
		if !slices.IsSortedFunc(got, func(a, b Record) int { return int(a.Offset - b.Offset) }) {
			t.Fatal("not in due order")
		}
		slices.SortFunc(got, func(a, b Record) int { return a.Number - b.Number })
		for i := range got {
			got[i].Line = 0
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
	}
}

// A part of a trace keeps the edges within it. A row without any parent left is due at its own instant.
func TestPartOfSessions(t *testing.T) {
	rows := []Record{
		{Number: 4, Offset: time.Second, InputTokens: 5, Session: "s", After: []Edge{{1, time.Second}}, Floating: true},
		{Number: 6, Offset: 3 * time.Second, InputTokens: 5, Session: "s", After: []Edge{{4, 2 * time.Second}, {2, 0}}, Floating: true},
	}
	content, warnings := written(t, Sessions, WriterOptions{}, rows...)
	want := `{"schema":"replayd.sessions.v1","block_size":512}
{"row":0,"after":[],"timestamp":1000,"input_length":5,"session_id":"s"}
{"row":1,"after":[{"row":0,"wait":2000}],"input_length":5,"session_id":"s"}
`
	if content != want {
		t.Errorf("want %s, got %s", want, content)
	}
	if diff := cmp.Diff([]string{"left out parents of 2 of 2 rows: they are not among the rows that are written"}, warnings); diff != "" {
		t.Error(diff)
	}
}
