package synth

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"replayd/internal/trace"
)

type message struct{ Role, Content string }

// chat makes a row's messages, decodes them and checks that they have the expected numbers of tokens.
func chat(t *testing.T, p *Prompter, r *trace.Record, salt uint64, overhead int, answers ...[]byte) []message {
	t.Helper()
	got, n := p.AppendMessages([]byte("x"), r, salt, overhead, answers)
	var list []message
	if err := json.Unmarshal(got[1:], &list); err != nil {
		t.Fatalf("%v in %s", err, got)
	}
	want, left := 0, max(0, overhead)
	for i, part := range r.Parts {
		if i == len(r.Parts)-1 {
			part.Tokens = max(1, part.Tokens-left)
		}
		want += part.Tokens
		if list[i].Role != part.Role {
			t.Errorf("message %d is from %q, want %q", i, list[i].Role, part.Role)
		}
		if len(answers) == 0 {
			if got := oneTokenWords(t, p, list[i].Content); got != part.Tokens {
				t.Errorf("message %d has %d tokens, want %d", i, got, part.Tokens)
			}
		}
	}
	if len(list) != len(r.Parts) || n != want {
		t.Fatalf("%d messages of %d tokens, want %d of %d", len(list), n, len(r.Parts), want)
	}
	return list
}

// oneTokenWords counts the tokens of a text, which must begin with a starter and continue with words of the list.
func oneTokenWords(t *testing.T, p *Prompter, text string) int {
	t.Helper()
	known := vocabularies[p.Words]
	if known == nil {
		known = vocabulary(p.Words)
		vocabularies[p.Words] = known
	}
	parts := strings.Split(text, " ")
	for i, word := range parts {
		if i > 0 {
			word = " " + word
		}
		if !known[word] {
			t.Fatalf("%q at place %d is no token there", word, i)
		}
	}
	return len(parts)
}

// talk returns a row with parts of the given lengths: a system prompt, then user and assistant messages in turn.
func talk(number int, lengths ...int) *trace.Record {
	r := &trace.Record{Number: number}
	roles := []string{"system", "user", "assistant", "user", "assistant", "user"}
	for i, n := range lengths {
		r.Parts = append(r.Parts, trace.Part{Role: roles[i], ID: uint64(100*number + i), Tokens: n})
		r.InputTokens += n
	}
	return r
}

func TestMessagesAreExact(t *testing.T) {
	for _, list := range []string{"main", "all"} {
		p := prompter(t, Options{Words: words(t, list), Seed: 42})
		for _, c := range []struct {
			lengths  []int
			overhead int
		}{
			{[]int{1}, 0},
			{[]int{700}, 8},
			{[]int{20, 1}, 5},
			{[]int{20, 30, 40, 50}, 0},
			{[]int{20, 30, 40, 50}, 49},
			{[]int{20, 30, 40, 50}, 5000},
			{[]int{1, 1, 1, 1, 1, 1}, 3},
		} {
			chat(t, p, talk(3, c.lengths...), 7, c.overhead)
		}
	}
}

func TestATurnBeginsWithTheTurnBefore(t *testing.T) {
	p := prompter(t, Options{Seed: 42})
	first, second := talk(1, 20, 30), talk(1, 20, 30, 40, 50)
	a, b := chat(t, p, first, 7, 0), chat(t, p, second, 7, 0)
	if !slices.Equal(a, b[:2]) {
		t.Errorf("the second turn begins %v, want %v", b[:2], a)
	}
	text, n := p.AppendText(nil, first, 7, 0)
	longer, m := p.AppendText(nil, second, 7, 3)
	if !strings.HasPrefix(string(longer), string(text)+" ") || n != 50 || m != 137 {
		t.Errorf("%d tokens %q are no beginning of %d tokens %q", n, text, m, longer)
	}
	if got := oneTokenWords(t, p, string(longer)); got != 137 {
		t.Errorf("the text has %d tokens, want 137", got)
	}
	if x, y := ids(t, p, first, 7, 0), ids(t, p, second, 7, 0); !slices.Equal(x, y[:50]) {
		t.Error("the ids of a turn are no beginning of the next one's")
	}
	// Salt, seed and ID change the text of a part. The number of the row does not.
	same := &trace.Record{Number: 9, InputTokens: 20, Parts: first.Parts[:1]}
	if got := chat(t, p, same, 7, 0); got[0] != a[0] {
		t.Error("a row's number changes the text of its parts")
	}
	for name, other := range map[string][]message{
		"salt": chat(t, p, first, 8, 0),
		"seed": chat(t, prompter(t, Options{Seed: 43}), first, 7, 0),
		"ID":   chat(t, p, talk(2, 20, 30), 7, 0),
	} {
		if other[0] == a[0] || other[1] == a[1] {
			t.Errorf("another %s gives the same messages", name)
		}
	}
}

func TestAnswersReplaceTheAssistant(t *testing.T) {
	p := prompter(t, Options{Seed: 42})
	r := talk(1, 20, 30, 40, 50, 60, 70)
	made := chat(t, p, r, 7, 0)
	for _, c := range []struct {
		answers [][]byte
		want    []string // of the assistant; "made": the generated text
	}{
		{nil, []string{"made", "made"}},
		{[][]byte{nil, []byte("no")}, []string{"made", "no"}},
		{[][]byte{[]byte("a \"b\"\n<c> ☃")}, []string{"a \"b\"\n<c> ☃", "made"}},
		{[][]byte{{}, []byte("\xff"), []byte("nobody's")}, []string{"", "\ufffd"}},
	} {
		got := chat(t, p, r, 7, 4, c.answers...)
		for i, want := range c.want {
			if want == "made" {
				want = made[2+2*i].Content
			}
			if got[2+2*i].Content != want {
				t.Errorf("%q: answer %d is %q, want %q", c.answers, i, got[2+2*i].Content, want)
			}
		}
		if got[0] != made[0] || got[1] != made[1] || got[3] != made[3] {
			t.Errorf("%q: other messages changed", c.answers)
		}
	}
	text, n := p.AppendTurns(nil, r, 7, 0, [][]byte{[]byte("Yes."), nil})
	want := strings.Join([]string{made[0].Content, made[1].Content, "Yes.", made[3].Content, made[4].Content, made[5].Content}, " ")
	if string(text) != want || n != 270 {
		t.Errorf("%d tokens %q, want 270 of %q", n, text, want)
	}
}

func TestRowsWithoutPartsAreOneMessage(t *testing.T) {
	for name, p := range map[string]*Prompter{
		"words": prompter(t, Options{Seed: 42, BlockTokens: 16}),
		"texts": prompter(t, Options{Texts: func(dst []byte, r *trace.Record, _ uint64, tokens int) []byte {
			return fmt.Appendf(dst, "row \"%d\", %d tokens", r.Number, tokens)
		}}),
	} {
		r := row(5, 40, 1, 2, 3)
		text, n := p.AppendText(nil, r, 7, 3)
		got, m := p.AppendMessages([]byte("x"), r, 7, 3, nil)
		var list []message
		if err := json.Unmarshal(got[1:], &list); err != nil {
			t.Fatal(err)
		}
		if want := (message{"user", string(text)}); len(list) != 1 || list[0] != want || n != 37 || m != 37 {
			t.Errorf("%s: %d tokens %v, want %d of %v", name, m, list, n, want)
		}
	}
}

func TestTextsOfADataSetReplaceWords(t *testing.T) {
	texts := func(dst []byte, r *trace.Record, _ uint64, tokens int) []byte {
		return fmt.Appendf(dst, "%d:%d", r.Number, tokens)
	}
	p := prompter(t, Options{Texts: texts})
	if got, n := p.AppendText([]byte("x"), row(4, 30), 1, 5); string(got) != "x4:25" || n != 25 {
		t.Errorf("%d tokens %q", n, got)
	}
	if got, n := p.AppendText(nil, talk(1, 2, 3), 1, 0); n != 5 || oneTokenWords(t, p, string(got)) != 5 {
		t.Errorf("parts: %d tokens %q", n, got)
	}
	_, err := New(Options{Words: words(t, "main"), Form: Tokens, Texts: texts})
	if want := `form: want "text" for texts of a data set, got "tokens"`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestBytesHasRoomForMessages(t *testing.T) {
	for _, form := range []Form{Text, Tokens} {
		p := prompter(t, Options{Form: form})
		for n := 1; n < 400; n += 7 {
			r := talk(n, n, n, 1, n, 3, n)
			room := p.Bytes(r)
			messages, _ := p.AppendMessages(nil, r, 1, 0, nil)
			text, _ := p.AppendText(nil, r, 1, 0)
			if form == Text && max(len(messages), len(text)) > room {
				t.Errorf("%d tokens: room for %d bytes, messages of %d, a text of %d", r.InputTokens, room, len(messages), len(text))
			}
			if list, _ := p.AppendIDs(nil, r, 1, 0); form == Tokens && len(list) > room {
				t.Errorf("%d tokens: room for %d bytes, ids of %d", r.InputTokens, room, len(list))
			}
		}
	}
}

func TestMessagesAllocateNothing(t *testing.T) {
	p := prompter(t, Options{Seed: 1})
	r := talk(1, 200, 300, 400, 500)
	buf := make([]byte, 0, p.Bytes(r))
	if n := testing.AllocsPerRun(20, func() { buf, _ = p.AppendMessages(buf[:0], r, 1, 7, nil) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
