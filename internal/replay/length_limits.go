package replay

import (
	"slices"

	"replayd/internal/dispatch"
	"replayd/internal/trace"
)

// limit applies the length limits to a row. It returns false if the row is filtered out.
//
// The length of a row's own text is the result of CountInput, or 0 without CountInput. Such a text is never truncated: if
// clipping the answer is not enough, the row is filtered out.
func (f *feed) limit(row *dispatch.Row) bool {
	w, rec := &f.r.w, &row.Due.Record
	if w.MaxInput == 0 && w.MaxOutput == 0 && w.MaxContext == 0 || w.OverLimit == Send {
		return true
	}
	own := rec.InputTokens == 0
	input, output := rec.InputTokens, rec.OutputTokens
	if own && w.CountInput != nil {
		row.Message.Counted = countInput(rec, rec.Messages, w.CountInput)
		input = row.Message.Counted
	}
	long := w.MaxInput > 0 && input > w.MaxInput || w.MaxOutput > 0 && output > w.MaxOutput || w.MaxContext > 0 && input+output > w.MaxContext
	if !long || w.OverLimit == Filter {
		return !long
	}
	if w.MaxOutput > 0 {
		output = min(output, w.MaxOutput)
	}
	most := input
	if w.MaxInput > 0 {
		most = min(most, w.MaxInput)
	}
	if w.MaxContext > 0 && !own {
		most = min(most, max(1, w.MaxContext-max(1, output)))
	}
	if own && most < input {
		return false
	}
	if w.MaxContext > 0 {
		if most >= w.MaxContext {
			return false
		}
		output = min(output, w.MaxContext-most)
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
