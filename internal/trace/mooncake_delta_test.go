package trace

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// twoDeltas are two sessions that begin alike, and a row of its own. The file's blocks have 128 tokens; replayd's have 64.
var twoDeltas = `{"session_id":"a","timestamp":100,"input_length":200,"output_length":30,"hash_ids":[7,8],"request_id":"x"}
{"session_id":"b","timestamp":150.5,"input_tokens":150,"output_tokens":4,"hash_ids":[7,9]}
{"session_id":"a","delay":5,"timestamp":900,"input_length":20,"output_length":100,"hash_ids":[1]}
{"timestamp":400,"input_length":64,"output_length":1,"hash_ids":[7]}
{"session_id":"b","created_time":450.5,"output_length":1,"hash_ids":[3]}
{"session_id":"a","timestamp":1000,"input_length":5,"output_length":2,"hash_ids":[1],"delay_ms":null}
{"session_id":"a","input_length":5,"output_length":2,"hash_ids":[1]}
`

// The prompt of a row is all that its session said before, with the answers. A session's blocks are its own after the first answer.
func TestMooncakeDelta(t *testing.T) {
	f, err := openContent(t, twoDeltas, Options{Format: MooncakeDelta, BlockTokens: 128})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	want := []Record{
		{Offset: 100 * ms, InputTokens: 200, OutputTokens: 30, Blocks: []uint64{0, 1, 2}, Session: "a", After: []Edge{}},
		{Offset: 105 * ms, InputTokens: 250, OutputTokens: 100, Blocks: []uint64{0, 1, 2}, Session: "a", After: []Edge{{0, 5 * ms}}, Floating: true},
		{Offset: 150*ms + ms/2, InputTokens: 150, OutputTokens: 4, Blocks: []uint64{0, 1}, Session: "b", After: []Edge{}},
		{
			Offset: 205 * ms, InputTokens: 355, OutputTokens: 2, Blocks: []uint64{0, 1, 2, 8, 9}, Session: "a",
			After: []Edge{{1, 100 * ms}}, Floating: true,
		},
		{
			Offset: 205 * ms, InputTokens: 362, OutputTokens: 2, Blocks: []uint64{0, 1, 2, 8, 9}, Session: "a",
			After: []Edge{{3, 0}}, Floating: true,
		},
		{Offset: 400 * ms, InputTokens: 64, OutputTokens: 1, Blocks: []uint64{0}},
		{
			Offset: 450*ms + ms/2, InputTokens: 282, OutputTokens: 1, Blocks: []uint64{0, 1, 6, 7}, Session: "b",
			After: []Edge{{2, 300 * ms}}, Floating: true,
		},
	}
	for i := range want {
		want[i].Number, want[i].Line = i, i+2
	}
	if diff := cmp.Diff(want, read(t, f, 0)); diff != "" {
		t.Error(diff)
	}
	if f.Stats.Format != MooncakeDelta || f.Stats.BlockTokens != 64 || f.Stats.Sessions != 2 {
		t.Errorf("got %+v", f.Stats)
	}
}

// Dynamo's own examples: its tests of a stack with this format have prompts of 8 tokens (blocks of 4) in the second row.
func TestMooncakeDeltaOfDynamo(t *testing.T) {
	f, err := openContent(t, `{"request_id":"r0","session_id":"s0","input_length":4,"output_length":2,"hash_ids":[1],"timestamp":0}
{"request_id":"r1","session_id":"s0","input_length":2,"output_length":1,"hash_ids":[2],"delay":5}`, Options{Format: MooncakeDelta, BlockTokens: 4})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if rows := read(t, f, 0); rows[1].InputTokens != 8 || !cmp.Equal(rows[1].After, []Edge{{0, 5 * ms}}) || !cmp.Equal(rows[1].Blocks, []uint64{0, 1}) {
		t.Errorf("got %+v", rows[1])
	}
}

func TestMooncakeDeltaFaults(t *testing.T) {
	first := `{"session_id":"a","timestamp":100,"input_length":600,"output_length":30,"hash_ids":[7,8]}` + "\n"
	later := `{"session_id":"a","timestamp":200,"input_length":600,"output_length":30,"hash_ids":[7,8]}` + "\n"
	for _, c := range []struct{ content, want string }{
		{first + "7", `t.jsonl:2: row: want a JSON object, got "7"`},
		{strings.Replace(first, "[7,8]", "[7]", 1), `t.jsonl:1: hash_ids: want 2 ids for 600 tokens in blocks of 512, got 1`},
		{strings.Replace(first, "[7,8]", "[7,8,9]", 1), `t.jsonl:1: hash_ids: want 2 ids for 600 tokens in blocks of 512, got 3`},
		{strings.Replace(first, `,"hash_ids":[7,8]`, "", 1), `t.jsonl:1: hash_ids: want 2 ids, got none`},
		{strings.Replace(first, "[7,8]", `"x"`, 1), `t.jsonl:1: hash_ids: want a list of integers, got "x"`},
		{strings.Replace(first, `"output_length":30,`, "", 1), `t.jsonl:1: output_length: want an integer ≥ 1, got none`},
		{strings.Replace(first, `"output_length":30`, `"output_length":0`, 1), `t.jsonl:1: output_length: want an integer ≥ 1, got 0`},
		{strings.Replace(first, `600`, `-6`, 1), `t.jsonl:1: input_length: want an integer ≥ 1, got -6`},
		{strings.Replace(first, `"timestamp"`, `"delay":5,"timestamp"`, 1), `t.jsonl:1: delay: want none in a session's first row, got 5`},
		{first + strings.Replace(later, "200", "99.5", 1), `t.jsonl:2: timestamp: want ≥ 100, that of the session's turn before on line 1, got 99.5`},
		{strings.Replace(first, `"timestamp":100,`, "", 1) + later, `t.jsonl:2: timestamp: want none or a delay, as line 1 has no timestamp, got one`},
		{first + strings.Replace(later, `"timestamp":200`, `"delay":-1`, 1), `t.jsonl:2: delay: want milliseconds ≥ 0, got -1`},
		{first + strings.Replace(later, `"a"`, `""`, 1), `t.jsonl:2: session_id: want a string that is not empty, got ""`},
		{
			first + strings.Replace(later, `"output_length":30`, `"output_length":16777216`, 1),
			`t.jsonl:2: input_length: want at most 16777216 tokens with all before it in its session, got 16778446`,
		},
	} {
		f, err := openContent(t, c.content, Options{Format: MooncakeDelta})
		if err == nil {
			t.Errorf("want %s, got none", c.want)
			_ = f.Close()
		} else if err.Error() != c.want {
			t.Errorf("want %s, got %v", c.want, err)
		}
	}
}

// A file whose format is not named is read as Mooncake: nothing in it says otherwise.
func TestMooncakeDeltaIsNamed(t *testing.T) {
	f, err := openContent(t, strings.Split(twoDeltas, "\n")[0], Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Stats.Format != Mooncake {
		t.Errorf("got %s", f.Stats.Format)
	}
}
