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
		Offset: 5 * time.Second, InputTokens: 9, OutputTokens: 1, Parts: []Part{{"system", 1, 4, nil}, {"user", 2, 5, nil}},
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

func TestUntimedRowsAreWrittenWithoutTimes(t *testing.T) {
	got, _ := written(t, Mooncake, WriterOptions{Untimed: true}, Record{InputTokens: 5}, Record{Text: "x"})
	if want := `{"input_length":5}` + "\n" + `{"text_input":"x"}` + "\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestWhatCannotBeWritten(t *testing.T) {
	for _, c := range []struct {
		row  Record
		want string
	}{
		{Record{Number: 7, Messages: []byte("[{")}, "row 7: messages: want JSON, got unexpected end of JSON input"},
		{Record{Text: strings.Repeat("\"", MaxLineBytes/2)}, "row 0: want a line of at most 8388608 bytes, got 8388640"},
	} {
		w, err := NewWriter(&bytes.Buffer{}, Mooncake, WriterOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(&c.row); err == nil || err.Error() != c.want {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
	w, err := NewWriter(&bytes.Buffer{}, Mooncake, WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); !errors.Is(err, ErrNoRows) {
		t.Errorf("got %v, want %v", err, ErrNoRows)
	}
	_, err = NewWriter(nil, Bailian, WriterOptions{})
	want := `format to write: want mooncake or sessions, got "bailian"`
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
