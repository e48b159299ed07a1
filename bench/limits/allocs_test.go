package limits_test

import (
	"math"
	"testing"

	"replayd/internal/openai"
	"replayd/internal/synth"
	"replayd/internal/token"
	"replayd/internal/trace"
)

// A hotPath makes the messages of a run, with a row of the mean length of Mooncake's conversation trace.
type hotPath struct {
	prompter *synth.Prompter
	client   *openai.Client
	row      trace.Record
	text     []byte // its prompt
	buffer   []byte // of the message
}

func newHotPath(t *testing.T) *hotPath {
	t.Helper()
	words, err := token.List("main")
	if err != nil {
		t.Fatal(err)
	}
	h := &hotPath{row: trace.Record{InputTokens: 12_035, OutputTokens: 100}}
	for i := range uint64(24) {
		h.row.Blocks = append(h.row.Blocks, i)
	}
	if h.prompter, err = synth.New(synth.Options{Words: words, Form: synth.Text, Seed: 42, BlockTokens: 512}); err != nil {
		t.Fatal(err)
	}
	h.client, err = openai.New(openai.Target{Options: openai.Options{
		URL: "127.0.0.1:1", API: openai.Chat, Model: "m",
		Output: openai.OutputExact,
	}, Name: "none", UserAgent: "replayd/bench"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.client.Close)
	h.text, _ = h.prompter.AppendText(nil, &h.row, 1, 0)
	return h
}

// message makes a whole message and returns its length.
func (h *hotPath) message(t *testing.T) int {
	var err error
	h.text, _ = h.prompter.AppendText(h.text[:0], &h.row, 1, 0)
	h.buffer, err = h.client.AppendRequest(h.buffer[:0], openai.Body{Prompt: h.text, MaxTokens: h.row.OutputTokens, RequestID: "load/1/17", Stream: true})
	if err != nil {
		t.Fatal(err)
	}
	return len(h.buffer)
}

// A prompt is made in an existing buffer, whatever its length. A message costs a few objects, whatever its prompt.
func TestMessagesAllocateLittle(t *testing.T) {
	h := newHotPath(t)
	count := func() float64 { return testing.AllocsPerRun(100, func() { h.message(t) }) }
	long := count()
	text := testing.AllocsPerRun(100, func() { h.text, _ = h.prompter.AppendText(h.text[:0], &h.row, 1, 0) })
	var ids []byte
	ids, _ = h.prompter.AppendIDs(ids, &h.row, 1, 0)
	tokens := testing.AllocsPerRun(100, func() { ids, _ = h.prompter.AppendIDs(ids[:0], &h.row, 1, 0) })
	h.row.InputTokens, h.row.Blocks = 20, h.row.Blocks[:1]
	short := count()
	t.Logf("objects: text %v, token ids %v, message of a long prompt %v, of a short one %v", text, tokens, long, short)
	if text > maxPrompt || tokens > maxPrompt {
		t.Errorf("want at most %v objects for a prompt, got %v of text and %v of token ids", maxPrompt, text, tokens)
	}
	if long > maxMessage || short > maxMessage {
		t.Errorf("want at most %v objects for a message, got %v of a long prompt and %v of a short one", maxMessage, long,
			short)
	}
	if math.Abs(long-short) > 1 { // under the race detector a pool drops one object of four
		t.Errorf("want as many objects for a message however long its prompt is, got %v of a long one and %v of a short one", long, short)
	}
}

// Most objects that a message and its prompt may allocate. The values were counted; lower them if fewer are needed.
const (
	maxPrompt  = 0.0
	maxMessage = 45.0
)
