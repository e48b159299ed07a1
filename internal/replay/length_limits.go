package replay

import (
	"slices"

	"replayd/internal/dispatch"
	"replayd/internal/fault"
	"replayd/internal/trace"
)

// OverLimit is the treatment of a row that is longer than MaxInput, MaxOutput or MaxContext.
type OverLimit string

// Treatments of rows over the length limits.
const (
	Filter OverLimit = "filter" // the row is not part of the replay
	Clip   OverLimit = "clip"   // the row is cut to the limit; over MaxContext its input, unless the output alone exceeds the limit
	Send   OverLimit = "send"   // the row is sent unchanged
)

// LengthLimits bound the rows that are sent, in tokens, with the keys of a trace; 0 is no limit.
type LengthLimits struct {
	MaxInput   int       `koanf:"max_input"`
	MaxOutput  int       `koanf:"max_output"`
	MaxContext int       `koanf:"max_context"` // of input and output together
	OverLimit  OverLimit `koanf:"over_limit"`
}

// Check returns the faults of the limits.
func (l *LengthLimits) Check() (f fault.List) {
	f.AtLeast("max_input", l.MaxInput, 0)
	f.AtLeast("max_output", l.MaxOutput, 0)
	f.AtLeast("max_context", l.MaxContext, 0)
	f.OneOf("over_limit", string(l.OverLimit), string(Filter), string(Clip), string(Send))
	return f
}

// limit applies the limits to a row. It returns false if the row is filtered out.
//
// The length of a row's own text is the result of count, or 0 without count. Such a text is never truncated: if
// clipping the answer is not enough, the row is filtered out.
func (l *LengthLimits) limit(row *dispatch.Row, count func(text []byte) (int, error)) bool {
	rec := &row.Due.Record
	if l.MaxInput == 0 && l.MaxOutput == 0 && l.MaxContext == 0 || l.OverLimit == Send {
		return true
	}
	own := rec.InputTokens == 0
	input, output := rec.InputTokens, rec.OutputTokens
	if own && count != nil {
		counted, err := countInput(rec, rec.Messages, count)
		if err != nil {
			return true // its message has the error too, and is dropped with it
		}
		row.Message.Counted, input = counted, counted
	}
	over := func(n, limit int) bool { return limit > 0 && n > limit }
	long := over(input, l.MaxInput) || over(output, l.MaxOutput) || over(input+output, l.MaxContext)
	if !long || l.OverLimit == Filter {
		return !long
	}
	if l.MaxOutput > 0 {
		output = min(output, l.MaxOutput)
	}
	most := input
	if l.MaxInput > 0 {
		most = min(most, l.MaxInput)
	}
	if l.MaxContext > 0 && !own {
		most = min(most, max(1, l.MaxContext-max(1, output)))
	}
	if own && most < input {
		return false
	}
	if l.MaxContext > 0 {
		if most >= l.MaxContext {
			return false
		}
		output = min(output, l.MaxContext-most)
	}
	row.Clipped = true
	rec.OutputTokens = output
	if !own {
		shorten(rec, most)
	}
	return true
}

// shorten removes tokens from the end of a prompt that is to be synthesized. Blocks beyond the new end are never reached.
// Messages are shortened from the last to the first, and each keeps at least one token.
func shorten(rec *trace.Record, tokens int) {
	off := rec.InputTokens - tokens
	rec.InputTokens = tokens
	if len(rec.Parts) == 0 || off <= 0 {
		return
	}
	rec.Parts = slices.Clone(rec.Parts) // other rows may share the slice
	for i := len(rec.Parts) - 1; i >= 0 && off > 0; i-- {
		n := min(off, rec.Parts[i].Tokens-1)
		rec.Parts[i].Tokens -= n
		off -= n
	}
	rec.InputTokens += off
}
