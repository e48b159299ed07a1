package replay

import (
	"time"

	"replayd/internal/openai"
	"replayd/internal/synth"
)

// A message is an HTTP request as bytes, and what it took to make it.
type message struct {
	body    []byte
	prompt  []byte // scratch space, for the next one
	cut     int    // template tokens taken off the prompt
	counted int    // tokens of the row's own text
	err     error  // it could not be made
}

// A Mark tells a workload's requests apart from those of the server's users. The zero value marks nothing.
type Mark struct {
	openai.Mark            // its CacheSalt is each request's own
	Salt        synth.Salt // which loops share a cache_salt; "" and SaltNone: none is sent
}

// at is the mark of the requests of a loop, and of a pass in it.
func (m *Mark) at(workload string, loopStart time.Time, pass int64) openai.Mark {
	mark := m.Mark
	mark.CacheSalt = ""
	if m.Salt != "" {
		mark.CacheSalt = m.Salt.Text(workload, loopStart, pass)
	}
	return mark
}

// message builds an item's HTTP message into buf. It reads only what never changes once the building has begun, so that a
// lane can build it again for a retry.
func (r *Runner) message(it *item, buf, scratch []byte) message {
	rec := &it.due.Record
	m := message{prompt: scratch[:0], counted: it.counted}
	b := openai.Body{
		RequestID: it.id, MaxTokens: rec.OutputTokens, Stream: !r.w.Whole,
		Messages: rec.Messages, Tools: rec.Tools, Payload: rec.Payload, Extra: rec.Extra,
		Mark: r.w.Mark.at(r.w.Name, it.loop.salt, it.due.Passes()),
	}
	switch {
	case rec.InputTokens > 0:
		m.cut = rec.InputTokens - r.synthesize(it, &m, &b)
	case rec.Messages != nil:
		b.Messages = answered(rec.Messages, it.answers)
	case rec.Text != "":
		b.Prompt = []byte(rec.Text)
	}
	if rec.InputTokens == 0 && m.counted == 0 && r.w.CountInput != nil {
		m.counted = countInput(rec, b.Messages, r.w.CountInput)
	}
	m.body, m.err = r.w.Client.AppendRequest(buf[:0], b)
	return m
}

// synthesize makes up what a row says the length of, and tells how many tokens it has.
func (r *Runner) synthesize(it *item, m *message, b *openai.Body) (tokens int) {
	rec, overhead := &it.due.Record, 0
	if r.w.Calibrate {
		overhead = r.w.Target.overhead()
	}
	salt := r.w.Salt.At(r.w.Name, it.loop.salt, it.due.Passes())
	switch answers := align(rec.Parts, it.answers); {
	case r.w.Prompt.Form == synth.Tokens:
		m.prompt, tokens = r.w.Prompt.AppendIDs(m.prompt, rec, salt, overhead)
		b.IDs = m.prompt
	case rec.Parts == nil:
		m.prompt, tokens = r.w.Prompt.AppendText(m.prompt, rec, salt, overhead)
		b.Prompt = m.prompt
	case r.w.Client.API() == openai.Chat:
		m.prompt, tokens = r.w.Prompt.AppendMessages(m.prompt, rec, salt, overhead, answers)
		b.Messages = m.prompt
	default:
		m.prompt, tokens = r.w.Prompt.AppendTurns(m.prompt, rec, salt, overhead, answers)
		b.Prompt = m.prompt
	}
	return tokens
}
