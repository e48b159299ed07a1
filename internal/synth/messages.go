package synth

import (
	"encoding/json"

	"replayd/internal/trace"
)

// AppendMessages appends a row's parts as a JSON array of chat messages and says how many tokens they have: InputTokens
// less what was taken off. The overhead (≥ 0) is what a chat template adds, and is taken off the tail of the last
// message, which keeps at least one. A row without parts is one user's message.
//
// An answer that is there and not nil replaces the text of the assistant's message of that place: answers[0] that of the
// first. Its tokens are not counted: it stands for those of the part.
//
// Each message begins as the text of a prompt does (see AppendText), so that it has its tokens whether a chat template
// trims it or not.
func (p *Prompter) AppendMessages(dst []byte, r *trace.Record, salt uint64, overhead int, answers [][]byte) (messages []byte, tokens int) {
	if len(r.Parts) == 0 {
		dst = append(dst, `[{"role":"user","content":`...)
		start := len(dst) + 1
		dst, tokens = p.AppendText(append(dst, '"'), r, salt, overhead)
		if p.Texts != nil {
			dst = appendQuoted(dst[:start-1], string(dst[start:]))
		} else {
			dst = append(dst, '"')
		}
		return append(dst, "}]"...), tokens
	}
	open := byte('[')
	for c := p.cut(r, salt, overhead); c.next(); tokens += c.tokens {
		if c.opens {
			dst = append(append(dst, open), `{"role":"`...)
			dst = append(append(dst, c.part.Role...), `","content":`...)
			open = ','
			if answer := c.answer(answers); answer != nil {
				dst = append(appendQuoted(dst, string(answer)), '}')
				continue
			}
			dst = append(dst, '"')
		} else {
			dst = dst[:len(dst)-len(`"}`)] // the message goes on
		}
		dst = append(p.appendWords(dst, &c), `"}`...)
	}
	return append(dst, ']'), tokens
}

// AppendTurns appends a row's parts as AppendText does, one after the other, with answers as in AppendMessages.
func (p *Prompter) AppendTurns(dst []byte, r *trace.Record, salt uint64, overhead int, answers [][]byte) (prompt []byte, tokens int) {
	start := len(dst)
	for c := p.cut(r, salt, overhead); c.next(); tokens += c.tokens {
		if c.opens && len(dst) > start {
			dst = append(dst, ' ')
		}
		if answer := c.answer(answers); answer != nil {
			dst = append(dst, answer...)
		} else {
			dst = p.appendWords(dst, &c)
		}
	}
	return dst, tokens
}

// answer returns the server's own answer if the piece is an assistant's message and there is one.
func (c *cut) answer(answers [][]byte) []byte {
	if c.part.Role != "assistant" || c.answers > len(answers) {
		return nil
	}
	return answers[c.answers-1]
}

// appendQuoted appends a JSON string. Invalid UTF-8 becomes U+FFFD.
func appendQuoted(dst []byte, s string) []byte {
	quoted, _ := json.Marshal(s) // it never fails for a string
	return append(dst, quoted...)
}
