package measure

import "cmp"

// A Length is the length of a prompt or an answer in tokens; 0 is not known.
type Length struct {
	Asked   int // by the row
	Counted int // by the server, of an ok answer
}

// Compared reports whether both lengths are known.
func (l Length) Compared() bool { return l.Asked > 0 && l.Counted > 0 }

// Other reports whether the server counted another length than the row asks for. One token is a difference: servers
// that are asked for exact lengths give them.
func (l Length) Other() bool { return l.Compared() && l.Counted != l.Asked }

// PromptLength returns the length of the prompt, with the tokens that the server adds to it.
func (r *Request) PromptLength() Length {
	l := Length{Asked: r.InputTokens}
	if r.Outcome == OK {
		l.Counted = r.Usage.Prompt
	}
	return l
}

// AnswerLength returns the length of the answer, with its reasoning.
func (r *Request) AnswerLength() Length {
	l := Length{Asked: r.OutputTokens}
	if r.Outcome == OK && r.Usage.ByServer() {
		l.Counted = r.Usage.Output
	}
	return l
}

// Input returns the tokens of the prompt: as counted by the server, else by a tokenizer, else as the row asks.
func (r *Request) Input() int { return cmp.Or(r.Usage.Prompt, r.CountedInput, r.InputTokens) }

// ByServer reports whether the server counted the output.
func (u *Usage) ByServer() bool {
	return u.Source != "" && u.Source != UsageText && u.Source != UsageCounted
}
