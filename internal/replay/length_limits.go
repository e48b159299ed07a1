package replay

import (
	"slices"

	"replayd/internal/dispatch"
	"replayd/internal/trace"
)

// limit applies the length limits to a row: false when it is filtered out.
//
// A row's own text is as long as CountInput says, and 0 without that. It is not cut: where clipping its answer is not enough,
// the row is filtered out.
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

// shorten takes tokens off the tail of a prompt that is to be synthesized. Blocks past its end are never reached. Messages
// give up theirs from the last to the first, and keep one each; so many are there at least.
func shorten(rec *trace.Record, tokens int) {
	off := rec.InputTokens - tokens
	rec.InputTokens = tokens
	if len(rec.Parts) == 0 || off <= 0 {
		return
	}
	rec.Parts = slices.Clone(rec.Parts) // other rows may share them
	for i := len(rec.Parts) - 1; i >= 0 && off > 0; i-- {
		n := min(off, rec.Parts[i].Tokens-1)
		rec.Parts[i].Tokens -= n
		off -= n
	}
	rec.InputTokens += off
}
