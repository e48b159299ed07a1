package replay

import (
	"time"

	"replayd/internal/dispatch"
	"replayd/internal/openai"
	"replayd/internal/synth"
	"replayd/internal/trace"
)

// RequestFields are fields that distinguish a workload's requests from those of the server's users. The zero value sets
// none.
type RequestFields struct {
	openai.RequestFields            // CacheSalt and Session are ignored: each request has its own
	Salt                 synth.Salt // which loops share a cache_salt; "" and SaltNone: no cache_salt
	Seed                 uint64     // of the ids of sessions
}

// at returns the fields of a row's request in a pass of a loop.
func (m *RequestFields) at(workload string, loopStart time.Time, pass int64, r *trace.Record) openai.RequestFields {
	fields := m.RequestFields
	fields.CacheSalt = ""
	if m.Salt != "" {
		fields.CacheSalt = m.Salt.Text(workload, loopStart, pass, r)
	}
	if m.NamesSession() {
		fields.Session = synth.SessionID(workload, m.Seed, loopStart, pass, r)
	}
	return fields
}

// message builds a row's HTTP message in buf. It only reads fields that no longer change, so that a lane can build the
// message again for a retry. scratch is a buffer for the prompt; it is returned for reuse.
func (r *Runner) message(row *dispatch.Row, buf, scratch []byte) (m dispatch.Message, prompt []byte) {
	prompt, m.Counted = scratch[:0], row.Message.Counted
	rec, err := r.whole(row)
	if err != nil {
		m.Err = err
		return m, prompt
	}
	b := openai.Body{
		RequestID: row.ID, MaxTokens: rec.OutputTokens, Stream: !r.w.Whole,
		Messages: rec.Messages, Tools: rec.Tools, Payload: rec.Payload, Extra: rec.Extra,
		Request: r.w.Request.at(r.w.saltName(), row.Loop().Salt, row.Due.Passes(), rec),
	}
	switch {
	case rec.InputTokens > 0:
		var tokens int
		prompt, tokens = r.synthesize(row, rec, prompt, &b)
		m.Cut = rec.InputTokens - tokens
	case rec.Messages != nil:
		b.Messages = answered(rec.Messages, row.Answers)
	case rec.Text != "":
		b.Prompt = []byte(rec.Text)
	}
	if rec.InputTokens == 0 && m.Counted == 0 && r.w.CountInput != nil {
		m.Counted = countInput(rec, b.Messages, r.w.CountInput)
	}
	m.Body, m.Err = r.w.Client.AppendRequest(buf[:0], b)
	return m, prompt
}

// whole returns a row's record with all that it sends. A light row is read again.
func (r *Runner) whole(row *dispatch.Row) (*trace.Record, error) {
	if !row.Light {
		return &row.Due.Record, nil
	}
	rec, err := r.w.Plan.Reread(row.Due.Record)
	return &rec, err
}

// synthesize generates a prompt of the row's length. It returns the prompt and its number of tokens.
func (r *Runner) synthesize(row *dispatch.Row, rec *trace.Record, scratch []byte, b *openai.Body) (prompt []byte, tokens int) {
	overhead := 0
	if r.w.Calibrate {
		overhead = r.w.Target.overhead()
	}
	salt := r.w.Salt.At(r.w.saltName(), row.Loop().Salt, row.Due.Passes(), rec)
	switch answers := align(rec.Parts, row.Answers); {
	case r.w.Prompt.Form == synth.Tokens:
		prompt, tokens = r.w.Prompt.AppendIDs(scratch, rec, salt, overhead)
		b.IDs = prompt
	case rec.Parts == nil:
		prompt, tokens = r.w.Prompt.AppendText(scratch, rec, salt, overhead)
		b.Prompt = prompt
	case r.w.Client.API() == openai.Chat:
		prompt, tokens = r.w.Prompt.AppendMessages(scratch, rec, salt, overhead, answers)
		b.Messages = prompt
	default:
		prompt, tokens = r.w.Prompt.AppendTurns(scratch, rec, salt, overhead, answers)
		b.Prompt = prompt
	}
	return prompt, tokens
}
