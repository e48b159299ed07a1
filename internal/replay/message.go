package replay

import (
	"fmt"

	"replayd/internal/dispatch"
	"replayd/internal/openai"
	"replayd/internal/synth"
	"replayd/internal/trace"
)

// message builds a row's HTTP message in buf. It only reads fields that no longer change, so that a lane can build the
// message again for a retry. scratch is a buffer for the prompt; it is returned for reuse.
func (r *Runner) message(row *dispatch.Row, buf, scratch []byte) (m dispatch.Message, prompt []byte) {
	prompt, m.Counted, m.Form = scratch[:0], row.Message.Counted, r.w.Client.Form()
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
	case rec.Messages != nil && !rec.Verbatim:
		b.Messages = answered(rec.Messages, row.Answers)
	case rec.Text != "":
		b.Prompt = []byte(rec.Text)
	}
	if rec.InputTokens == 0 && m.Counted == 0 && r.w.CountInput != nil {
		if m.Counted, m.Err = countInput(rec, b.Messages, r.w.CountInput); m.Err != nil {
			m.Err = fmt.Errorf("row %d, line %d: its text cannot be counted: %w", rec.Number, rec.Line, m.Err)
			return m, prompt
		}
	}
	if rec.InputTokens > 0 && len(prompt) == 0 {
		m.Err = fmt.Errorf("row %d, line %d: want a text of %d tokens, got none: the tokenizer cannot count the dataset's", rec.Number, rec.Line, rec.InputTokens)
		return m, prompt
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
		overhead = int(r.w.Target.tokens.Load())
	}
	salt := r.w.Salt.At(r.w.saltName(), row.Loop().Salt, row.Due.Passes(), rec)
	switch answers := align(rec.Parts, row.Answers); {
	case r.w.Prompt.Form == synth.Tokens:
		prompt, tokens = r.w.Prompt.AppendIDs(scratch, rec, salt, overhead)
		b.IDs = prompt
	case rec.Parts == nil:
		prompt, tokens = r.w.Prompt.AppendText(scratch, rec, salt, overhead)
		b.Prompt = prompt
	case r.w.Client.Target().API == openai.Chat:
		prompt, tokens = r.w.Prompt.AppendMessages(scratch, rec, salt, overhead, answers)
		b.Messages = prompt
	default:
		prompt, tokens = r.w.Prompt.AppendTurns(scratch, rec, salt, overhead, answers)
		b.Prompt = prompt
	}
	return prompt, tokens
}
