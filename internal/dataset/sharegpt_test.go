package dataset

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"replayd/internal/trace"
)

const conversations = `[
 {"id": "a_0", "conversations": [{"from": "human", "value": "What is a good word for that?"}, {"from": "gpt", "value": "Perhaps it is none."},
  {"from": "human", "value": "Give me another one, please."}, {"from": "gpt", "value": "Then take this one."}, {"from": "human", "value": "Thanks!"}]},
 {"id": "b_0", "conversations": [{"from": "gpt", "value": "As I was saying before."}, {"from": "human", "value": "Say it again, please."}, {"from": "gpt", "value": "It is all the same."}]},
 {"id": "c_0", "conversations": [{"from": "human", "value": "Nobody answers."}]},
 {"id": "d_0"},
 {"id": "a_0", "extra": [1, {"x": null}], "conversations": [{"from": "human", "value": "short"}, {"from": "gpt", "value": "x"}]}
]
`

func TestShareGPTFirstPrompts(t *testing.T) {
	s := open(t, ShareGPT, conversations, Options{})
	want := []trace.Record{
		{Text: "What is a good word for that?"},
		{Number: 1, Text: "As I was saying before."},
		{Number: 2, Text: "short"},
	}
	if diff := cmp.Diff(want, s.Records()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"set: conversations without a prompt and an answer are left out: 2"}, s.Warnings); diff != "" {
		t.Error(diff)
	}

	tok := tokenizer(t)
	s = open(t, ShareGPT, conversations, Options{Tokenizer: tok})
	want = want[:2]
	for i, answer := range []string{"Perhaps it is none.", "Say it again, please."} {
		want[i].OutputTokens = counted(tok, []byte(answer))
	}
	if diff := cmp.Diff(want, s.Records()); diff != "" {
		t.Error(diff)
	}
	wantWarnings := []string{"set: conversations without a prompt and an answer are left out: 2: conversations out of the lengths that vLLM and AIPerf take are left out: 1"}
	if diff := cmp.Diff(wantWarnings, s.Warnings); diff != "" {
		t.Error(diff)
	}
}

// The limits are those of vLLM's is_valid_sequence, to the token.
func TestShareGPTLengths(t *testing.T) {
	tok := tokenizer(t)
	bytes := func(n int) string { return strings.Repeat("A", n) } // each capital letter is a token
	if counted(tok, []byte(bytes(1024))) != 1024 {
		t.Fatal("the tokenizer is another one")
	}
	for _, c := range []struct {
		prompt, answer int
		taken          bool
	}{
		{4, 4, true}, {3, 4, false}, {4, 3, false}, {1024, 1024, true}, {1025, 4, false}, {1000, 1048, true}, {1000, 1049, false},
	} {
		content := fmt.Sprintf(`[{"conversations":[{"value":%q},{"value":%q}]},{"conversations":[{"value":"AAAA"},{"value":"AAAA"}]}]`,
			bytes(c.prompt), bytes(c.answer))
		s := open(t, ShareGPT, content, Options{Tokenizer: tok})
		if taken := len(s.Records()) == 2; taken != c.taken {
			t.Errorf("%d tokens and %d: taken is %v, want %v", c.prompt, c.answer, taken, c.taken)
		}
	}
}

func TestShareGPTConversations(t *testing.T) {
	s := open(t, ShareGPT, conversations, Options{Turns: true})
	const first = `[{"role":"user","content":"What is a good word for that?"}`
	want := []trace.Record{
		{Session: "a_0", Messages: []byte(first + "]")},
		{
			Number: 1, Session: "a_0", Turn: 1,
			Messages: []byte(first + `,{"role":"assistant","content":"Perhaps it is none."},{"role":"user","content":"Give me another one, please."}]`),
		},
		{Number: 2, Session: "b_0", Messages: []byte(`[{"role":"user","content":"Say it again, please."}]`)},
		{Number: 3, Session: "entry 4", Messages: []byte(`[{"role":"user","content":"short"}]`)},
	}
	if diff := cmp.Diff(want, s.Records()); diff != "" || s.Unanswered {
		t.Errorf("%s, unanswered: %v", diff, s.Unanswered)
	}
}
