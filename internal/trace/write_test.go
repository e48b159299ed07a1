package trace

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// written writes rows and returns the file's content.
func written(t testing.TB, format Format, o WriterOptions, rows ...Record) (content string, warnings []string) {
	t.Helper()
	var out bytes.Buffer
	w, err := NewWriter(&out, format, o)
	if err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		if err := w.Write(&rows[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String(), w.Warnings()
}

var shapes = []Record{
	{InputTokens: 655, OutputTokens: 52, Blocks: []uint64{46, 1<<64 - 1}},
	{Offset: 1500 * ms, InputTokens: 20, OutputTokens: 3, Session: "a,\"b\" c", Delay: 250 * time.Microsecond},
	{Offset: 2 * time.Second, InputTokens: 7},
	{Offset: 2*time.Second + 1, Text: "What is <ü>\n\u2028?", OutputTokens: 4, Extra: []byte(`{"top_k": 1}`)},
	{Offset: 3 * time.Second, Messages: []byte("[{\"role\":\n \"user\"}]"), Tools: []byte(`[ {"a": 1} ]`)},
	{Offset: 4 * time.Second, Payload: []byte(`{"prompt": "x"}`)},
	{
		Offset: 5 * time.Second, InputTokens: 9, OutputTokens: 1, Parts: []Part{{"system", 1, 4}, {"user", 2, 5}},
		Gap: time.Second, Extra: []byte(`{"a":1}`), Blocks: []uint64{5},
	},
}

func TestWhatIsWritten(t *testing.T) {
	for _, c := range []struct {
		format   Format
		options  WriterOptions
		want     string
		warnings []string
	}{
		{
			Mooncake,
			WriterOptions{},
			`{"timestamp":0,"input_length":655,"output_length":52,"hash_ids":[46,18446744073709551615]}
{"timestamp":1500,"delay":0.25,"input_length":20,"output_length":3,"session_id":"a,\"b\" c"}
{"timestamp":2000,"input_length":7}
{"timestamp":2000.000001,"output_length":4,"text_input":"What is <ü>\n\u2028?","extra":{"top_k": 1}}
{"timestamp":3000,"messages":[{"role":"user"}],"tools":[ {"a": 1} ]}
{"timestamp":4000,"payload":{"prompt": "x"}}
{"timestamp":5000,"input_length":9,"output_length":1,"hash_ids":[5],"extra":{"a":1}}
`,
			[]string{"left out parts of 1 of 7 rows: mooncake has no place for it", "left out gap of 1 of 7 rows: mooncake has no place for it"},
		},
		{
			Azure,
			WriterOptions{},
			`TIMESTAMP,ContextTokens,GeneratedTokens
1970-01-01 00:00:00.0000000,655,52
1970-01-01 00:00:01.5000000,20,3
1970-01-01 00:00:05.0000000,9,1
`,
			[]string{
				"left out hash_ids of 2 of 7 rows: azure has no place for it",
				"left out session_id of 1 of 7 rows: azure has no place for it", "left out delay of 1 of 7 rows: azure has no place for it",
				"left out 4 of 7 rows: azure's rows have an input and an output length",
				"left out parts of 1 of 7 rows: azure has no place for it",
				"left out gap of 1 of 7 rows: azure has no place for it", "left out extra of 1 of 7 rows: azure has no place for it",
			},
		},
		{
			BurstGPT,
			WriterOptions{Sessions: true},
			`Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type
0,,,GPT-4,655,52,707,API log
1.5,"a,""b"" c",,GPT-4,20,3,23,Conversation log
5,,,GPT-4,9,1,10,API log
`,
			[]string{
				"left out hash_ids of 2 of 7 rows: burstgpt has no place for it", "left out delay of 1 of 7 rows: burstgpt has no place for it",
				"left out 4 of 7 rows: burstgpt's rows have an input and an output length",
				"left out parts of 1 of 7 rows: burstgpt has no place for it",
				"left out gap of 1 of 7 rows: burstgpt has no place for it", "left out extra of 1 of 7 rows: burstgpt has no place for it",
			},
		},
		{
			VLLM,
			WriterOptions{BlockTokens: 16},
			fmt.Sprintf(`{"timestamp":0,"input_length":655,"output_length":52,"hash_ids":[46,18446744073709551615,%s]}
{"timestamp":1.5,"input_length":20,"output_length":3,"hash_ids":[1152921504606847015,1152921504606847016]}
{"timestamp":5,"input_length":9,"output_length":1,"hash_ids":[5]}
`, following(firstFresh, 39)),
			[]string{
				"made up hash_ids for 2 of 7 rows: they have none or too few, and vllm's prompts are as long as their ids reach",
				"left out session_id of 1 of 7 rows: vllm has no place for it", "left out delay of 1 of 7 rows: vllm has no place for it",
				"left out 4 of 7 rows: vllm's rows have an input and an output length",
				"left out parts of 1 of 7 rows: vllm has no place for it",
				"left out gap of 1 of 7 rows: vllm has no place for it", "left out extra of 1 of 7 rows: vllm has no place for it",
			},
		},
	} {
		t.Run(string(c.format), func(t *testing.T) {
			got, warnings := written(t, c.format, c.options, shapes...)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.warnings, warnings); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// following returns n consecutive ids, comma-separated.
func following(first uint64, n int) string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprint(first + uint64(i))
	}
	return strings.Join(ids, ",")
}

func TestUntimedRowsAreWrittenWithoutTimes(t *testing.T) {
	got, _ := written(t, Mooncake, WriterOptions{Untimed: true}, Record{InputTokens: 5}, Record{Text: "x"})
	if want := `{"input_length":5}` + "\n" + `{"text_input":"x"}` + "\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, format := range []Format{Azure, BurstGPT, VLLM} {
		_, err := NewWriter(nil, format, WriterOptions{Untimed: true})
		if want := fmt.Sprintf("format %s: want rows with timestamps, got a trace without", format); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestWhatCannotBeWritten(t *testing.T) {
	for _, c := range []struct {
		format Format
		row    Record
		want   string
	}{
		{Mooncake, Record{Number: 7, Messages: []byte("[{")}, "row 7: messages: want JSON, got unexpected end of JSON input"},
		{Mooncake, Record{Text: strings.Repeat("\"", MaxLineBytes/2)}, "row 0: want a line of at most 8388608 bytes, got 8388640"},
		{BurstGPT, Record{InputTokens: 1, OutputTokens: 1, Session: "a\nb"}, `row 0: session_id: want no end of line for a CSV file, got "a\nb"`},
	} {
		w, err := NewWriter(&bytes.Buffer{}, c.format, WriterOptions{Sessions: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(&c.row); err == nil || err.Error() != c.want {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
	w, err := NewWriter(&bytes.Buffer{}, Azure, WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(&Record{Text: "x"}); err != nil {
		t.Fatal(err)
	}
	want := "want at least one row, got none: 1 were given to write as azure"
	if err := w.Close(); !errors.Is(err, ErrNoRows) || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	_, err = NewWriter(nil, Bailian, WriterOptions{})
	want = `format to write: want mooncake, azure, burstgpt, vllm, sessions or agentic_mooncake, got "bailian"`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// randomRows returns rows of every kind in Mooncake's format, in due order, with instants to the nanosecond.
func randomRows(rng *rand.Rand, n, block int) []Record {
	text := func() string { return string([]rune("a\"\\\n<ü\u2028 \t漢🙂")[rng.IntN(11):]) + "x" }
	rows := make([]Record, n)
	at := time.Duration(rng.Int64N(int64(365 * 24 * time.Hour)))
	last := map[string]bool{}
	for i := range rows {
		r := &rows[i]
		r.Number, r.Line, r.Offset = i, i+1, at
		at += time.Duration(rng.Int64N(5e9)) * time.Duration(rng.IntN(2))
		switch rng.IntN(5) {
		case 0, 1:
			r.InputTokens = 1 + rng.IntN(5*block)
			for range blocksOf(r.InputTokens, block) * rng.IntN(2) {
				r.Blocks = append(r.Blocks, rng.Uint64()>>rng.IntN(64))
			}
		case 2:
			r.Text = text()
		case 3:
			r.Messages = fmt.Appendf(nil, `[{"role": "user",  "content": "%d"}]`, rng.Uint64())
			if rng.IntN(2) == 0 {
				r.Tools = []byte(`[{"type":"function"}]`)
			}
		case 4:
			r.Payload = fmt.Appendf(nil, `{ "prompt": "%d" }`, rng.Uint64())
		}
		r.OutputTokens = rng.IntN(3) * rng.IntN(MaxTokens/2)
		if rng.IntN(3) == 0 {
			r.Extra = []byte(`{"top_k":1}`)
		}
		if rng.IntN(3) == 0 {
			r.Session = []string{"a", text(), "0"}[rng.IntN(3)]
			if last[r.Session] {
				r.Delay = time.Duration(rng.Int64N(1e10))
			}
			last[r.Session] = true
		}
	}
	return rows
}

func TestReadWhatWasWritten(t *testing.T) {
	seeds := uint64(200)
	if testing.Short() {
		seeds = 50
	}
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 3))
		block := blockSizes[rng.IntN(len(blockSizes))]
		want := randomRows(rng, 1+rng.IntN(60), block)
		content, warnings := written(t, Mooncake, WriterOptions{}, want...)
		if warnings != nil {
			t.Fatal(warnings)
		}
		f := open(t, content, Options{BlockTokens: block})
		if diff := cmp.Diff(want, read(t, f, 0)); diff != "" {
			t.Fatalf("seed %d: %s\n%s", seed, diff, content)
		}
		if again, _ := written(t, Mooncake, WriterOptions{}, read(t, f, 0)...); again != content {
			t.Fatalf("seed %d: written again, it is\n%s, was\n%s", seed, again, content)
		}
	}
}

// The formats of lengths keep lengths and times (in CSV, times from the first row on). vLLM keeps ids too.
func TestReadWhatWasWrittenAsLengths(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 3))
	var want []Record
	for _, r := range randomRows(rng, 300, 16) {
		if r.InputTokens == 0 || r.OutputTokens == 0 {
			continue
		}
		want = append(want, Record{
			Number: len(want), Line: len(want) + 1, Offset: r.Offset, InputTokens: r.InputTokens,
			OutputTokens: r.OutputTokens, Blocks: r.Blocks,
		})
	}
	for i := range want {
		for len(want[i].Blocks) < blocksOf(want[i].InputTokens, 16) {
			want[i].Blocks = append(want[i].Blocks, uint64(i*100+len(want[i].Blocks)))
		}
	}
	content, _ := written(t, VLLM, WriterOptions{BlockTokens: 16}, want...)
	if diff := cmp.Diff(want, read(t, open(t, content, Options{Format: VLLM}), 0)); diff != "" {
		t.Errorf("vllm: %s", diff)
	}
	first := want[0].Offset
	for i := range want {
		want[i].Blocks, want[i].Line = nil, i+2
		want[i].Offset -= first
	}
	for _, format := range []Format{Azure, BurstGPT} {
		content, _ := written(t, format, WriterOptions{}, want...)
		f := open(t, content, Options{})
		if diff := cmp.Diff(want, read(t, f, 0)); diff != "" || f.Stats.Format != format {
			t.Errorf("%s, read as %s: %s", format, f.Stats.Format, diff)
		}
	}
}
