package synth

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"replayd/internal/trace"
)

// accumulated returns rows, in order, with the turns before.
func accumulated(t *testing.T, rows ...trace.Record) []trace.Record {
	t.Helper()
	for i := range rows {
		rows[i].Number = i
	}
	if _, _, err := Accumulate(rows); err != nil {
		t.Fatal(err)
	}
	return rows
}

// The two rows of AIPerf's own documentation: its second prompt has the first one, the answer to it and its own tokens.
func TestTurnsAccumulate(t *testing.T) {
	rows := accumulated(t,
		trace.Record{Session: "a", InputTokens: 300, OutputTokens: 40},
		trace.Record{InputTokens: 77},
		trace.Record{Session: "a", InputTokens: 150, OutputTokens: 20},
		trace.Record{Session: "b", InputTokens: 10},
		trace.Record{Session: "a", InputTokens: 5},
		trace.Record{Session: "b", InputTokens: 600},
	)
	for i, want := range []int{300, 77, 490, 10, 515, 738} { // an answer of no length stands for 128 tokens, or half of a longer prompt
		if rows[i].InputTokens != want {
			t.Errorf("row %d: want %d tokens, got %d", i, want, rows[i].InputTokens)
		}
	}
	p := prompter(t, Options{BlockTokens: 16})
	first, second, third := chat(t, p, &rows[0], 7, 0), chat(t, p, &rows[2], 7, 0), chat(t, p, &rows[4], 7, 0)
	if second[0] != first[0] || third[0] != first[0] || third[1] != second[1] || third[2] != second[2] {
		t.Error("want later turns to begin with the turns before")
	}
	said := chat(t, p, &rows[4], 7, 0, []byte("yes"), nil)
	if said[1] != (message{"assistant", "yes"}) || said[2] != third[2] || said[3] != third[3] {
		t.Errorf("want the server's answer in its place, and a made-up one where there is none, got %.100q", said)
	}
	if rows[1].Parts != nil {
		t.Error("want a row without a session as it is")
	}
}

// Blocks of new turns are shared as those of whole prompts are: between sessions, and however a prompt is divided.
func TestBlocksOfTurnsAreShared(t *testing.T) {
	rows := accumulated(t,
		trace.Record{Session: "a", InputTokens: 40, OutputTokens: 8, Blocks: []uint64{1, 2, 3}},
		trace.Record{Session: "b", InputTokens: 40, OutputTokens: 8, Blocks: []uint64{1, 2, 4}},
		trace.Record{Session: "a", InputTokens: 20, Blocks: []uint64{5, 6}},
		trace.Record{Session: "b", InputTokens: 33, Blocks: []uint64{5, 6}},
	)
	p := prompter(t, Options{BlockTokens: 16})
	whole, _ := p.AppendText(nil, row(9, 40, 1, 2, 3), 7, 0)
	a, b := chat(t, p, &rows[2], 7, 0), chat(t, p, &rows[3], 7, 0)
	if a[0].Content != string(whole) {
		t.Error("want a first turn to be the text of its blocks")
	}
	words := func(text string) string { return strings.Join(strings.Split(text, " ")[:32], " ") }
	if words(a[0].Content) != words(b[0].Content) || a[0] == b[0] {
		t.Error("want two blocks shared and no more")
	}
	words = func(text string) string { return strings.Join(strings.Split(text, " ")[:20], " ") }
	if words(a[2].Content) != words(b[2].Content) {
		t.Error("want the blocks of later turns shared")
	}
}

// Any blocks and lengths: the prompt has its tokens, as text, as messages and as ids.
func TestAccumulatedPromptsAreExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	p := prompter(t, Options{BlockTokens: 16})
	for range 100 {
		var rows []trace.Record
		for range 1 + rng.IntN(5) {
			r := trace.Record{Session: "a", InputTokens: 1 + rng.IntN(100), OutputTokens: rng.IntN(30)}
			for i := range rng.IntN(2 + r.InputTokens/16) {
				r.Blocks = append(r.Blocks, rng.Uint64N(5)+uint64(10*i))
			}
			rows = append(rows, r)
		}
		for _, r := range accumulated(t, rows...) {
			overhead := rng.IntN(10)
			if len(r.Parts) > 0 {
				chat(t, p, &r, 7, overhead)
			}
			text, n := p.AppendText(nil, &r, 7, overhead)
			ids, m := p.AppendIDs(nil, &r, 7, overhead)
			if got := len(strings.Split(string(text), " ")); got != n || m != n || strings.Count(string(ids), ",")+1 != n {
				t.Errorf("want %d tokens, got %d words, %s", n, got, ids)
			}
		}
	}
}

func TestTextsAccumulate(t *testing.T) {
	rows := accumulated(t,
		trace.Record{Session: "a", Text: `one "1"`},
		trace.Record{Session: "a", Text: "two"},
		trace.Record{Text: "alone"},
		trace.Record{Session: "b", Payload: json.RawMessage(`{}`)},
		trace.Record{Session: "b", Messages: json.RawMessage(`[]`)},
	)
	for i, want := range []string{
		`[{"role":"user","content":"one \"1\""}]`,
		`[{"role":"user","content":"one \"1\""},{"role":"assistant","content":""},{"role":"user","content":"two"}]`, "", "", "[]",
	} {
		if got := string(rows[i].Messages); got != want || rows[i].Verbatim != (i > 1) {
			t.Errorf("row %d: want %s, got %s, verbatim: %v", i, want, got, rows[i].Verbatim)
		}
	}
}

// Ids that begin with those of the turn before say that the turn is in the prompt already.
func TestWholePromptsStayAsTheyAre(t *testing.T) {
	rows := []trace.Record{
		{Session: "a", InputTokens: 40, OutputTokens: 8, Blocks: []uint64{1, 2}},
		{Session: "a", InputTokens: 64, OutputTokens: 8, Blocks: []uint64{1, 2, 3, 4}},
		{Session: "a", InputTokens: 16, Blocks: []uint64{9}},
	}
	lengthened, whole, err := Accumulate(rows)
	if err != nil || lengthened != 1 || whole != 1 || rows[1].InputTokens != 64 || rows[1].Parts != nil {
		t.Errorf("want 1 lengthened and 1 whole, got %d, %d, %v, %v", lengthened, whole, rows[1], err)
	}
	if want := 64 + 8 + 16; rows[2].InputTokens != want || len(rows[2].Parts) != 3 { // the whole prompt stands for all before it
		t.Errorf("want %d tokens in 3 messages behind a whole prompt, got %v", want, rows[2])
	}
}

func TestAccumulateFaults(t *testing.T) {
	for _, c := range []struct {
		rows []trace.Record
		want string
	}{
		{
			[]trace.Record{{Line: 1, Session: "a", Text: "x"}, {Line: 2, Session: "a", InputTokens: 5}},
			"line 2: want the turns of a session all by length or all with text_input, got both",
		},
		{
			[]trace.Record{{Line: 1, Session: "a", InputTokens: trace.MaxTokens}, {Line: 2, Session: "a", InputTokens: 5}},
			"line 2: want at most 16777216 tokens with the turns before, got 25165829",
		},
	} {
		if _, _, err := Accumulate(c.rows); err == nil || err.Error() != c.want {
			t.Errorf("want %s, got %v", c.want, err)
		}
	}
}
