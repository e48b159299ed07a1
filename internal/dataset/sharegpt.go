package dataset

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"replayd/internal/trace"
)

// shareGPTSource says where to get the file, as vLLM's documentation and AIPerf do.
const shareGPTSource = "it can be had from https://huggingface.co/datasets/anon8231489123/ShareGPT_Vicuna_unfiltered/resolve/main/" +
	"ShareGPT_V3_unfiltered_cleaned_split.json"

// The lengths that vLLM and AIPerf accept from ShareGPT (is_valid_sequence in vllm/benchmarks/datasets, 2026, and in
// aiperf's base_loader.py): prompt and answer at least 4 tokens each, prompt at most 1,024, both together at most
// 2,048.
const (
	leastTokens  = 4
	promptTokens = 1024
	bothTokens   = 2048
)

// shareGPT reads the list of conversations, one conversation at a time.
func (b *builder) shareGPT(in io.Reader, name string) error {
	bounded := &io.LimitedReader{R: in, N: MaxEntryBytes}
	dec := json.NewDecoder(bounded)
	if t, err := dec.Token(); err != nil || t != json.Delim('[') {
		if bounded.N <= 0 || err == nil || errors.Is(err, io.EOF) {
			return fmt.Errorf("%s: want a JSON list of conversations, got something else", name)
		}
		return fmt.Errorf("%s: want a JSON list of conversations, got %w", name, err)
	}
	more := func() bool {
		bounded.N = MaxEntryBytes // separators between entries do not count
		return dec.More()
	}
	for number := 0; !b.full() && more(); number++ {
		if err := b.ctx.Err(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		at := fmt.Sprintf("%s: entry %d", name, number)
		var e entry
		bounded.N = MaxEntryBytes
		var wrong *json.UnmarshalTypeError
		switch err := dec.Decode(&e); {
		case errors.As(err, &wrong):
			b.want(at, wrong.Field, "a "+wrong.Type.String(), wrong.Value)
			continue
		case errors.Is(err, io.ErrUnexpectedEOF) && bounded.N <= 0:
			return fmt.Errorf("%s: want at most %d bytes, got more", at, MaxEntryBytes)
		case err != nil:
			return fmt.Errorf("%s: byte %d: want a conversation, got %w", at, dec.InputOffset(), err)
		}
		e.number = number
		if err := b.entry(&e, name); err != nil {
			return err
		}
	}
	if !b.full() {
		if _, err := dec.Token(); err != nil {
			return fmt.Errorf("%s: want a whole JSON list, got %w", name, err)
		}
	}
	if _, err := io.Copy(io.Discard, bounded.R); err != nil { // the hash covers the rest too
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// An entry is a conversation of ShareGPT. The speakers are human and gpt; some entries also have system and others.
type entry struct {
	ID            string    `json:"id"`
	Conversations []message `json:"conversations"`
	number        int
}

type message struct {
	From  string `json:"from"`
	Value string `json:"value"`
}

func (b *builder) entry(e *entry, name string) error {
	c := conversation{name: name, turns: e.first()}
	if b.options.Turns {
		c.turns = e.pairs()
	}
	if len(c.turns) == 0 {
		b.short++
		return nil
	}
	for i := range c.turns {
		t := &c.turns[i]
		at := fmt.Sprintf("%s: entry %d", name, e.number)
		if t.output = b.count(at, "answer", t.answer); b.tooShortOrLong(at, t) {
			b.long++
			return nil
		}
	}
	if !b.options.Turns {
		t := c.turns[0]
		b.texts(t.texts...)
		return b.add(trace.Record{Text: t.texts[0], OutputTokens: t.output}, name)
	}
	c.session = e.ID
	if _, known := b.sessions[c.session]; known || c.session == "" || len(c.session) > trace.MaxSessionBytes {
		c.session = fmt.Sprintf("entry %d", e.number)
	}
	b.sessions[c.session] = e.number
	return b.turns(&c)
}

func (b *builder) tooShortOrLong(at string, t *turn) bool {
	if b.options.Tokenizer == nil {
		return false
	}
	prompt := b.count(at, "prompt", t.texts[0])
	return prompt < leastTokens || t.output < leastTokens || prompt > promptTokens || prompt+t.output > bothTokens
}

// first returns the first message as the prompt and the second as the answer, whatever their roles, as vLLM does.
func (e *entry) first() []turn {
	if len(e.Conversations) < 2 || e.Conversations[0].Value == "" {
		return nil
	}
	return []turn{{texts: []string{e.Conversations[0].Value}, role: "user", answer: e.Conversations[1].Value}}
}

// pairs returns each message of human that is followed by one of gpt. As in AIPerf, other speakers are skipped. If no
// speaker is human or gpt, pairs returns the first two messages as the only pair.
func (e *entry) pairs() (turns []turn) {
	var said []message
	for _, m := range e.Conversations {
		if m.From == "human" || m.From == "gpt" {
			said = append(said, m)
		}
	}
	if len(said) == 0 {
		return e.first()
	}
	for i := 0; i+1 < len(said); i++ {
		if said[i].From != "human" || said[i+1].From != "gpt" {
			continue
		}
		if said[i].Value != "" && said[i+1].Value != "" {
			turns = append(turns, turn{texts: []string{said[i].Value}, role: "user", answer: said[i+1].Value})
		}
		i++
	}
	return turns
}
