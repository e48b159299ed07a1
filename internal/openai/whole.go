package openai

import (
	"context"

	"replayd/internal/measure"
	"replayd/internal/openai/internal/wire"
)

// maxWhole bounds an answer in one piece: the longest of today have a megabyte, and ten times that with log probabilities.
const maxWhole = 16 << 20

// whole reads the answer's body as one JSON object. It is one chunk, which came with the last byte of the object.
func (l *Lane) whole(ctx context.Context, req *measure.Request) *failure {
	if f := l.unfit(ctx, req, jsonObject); f != nil {
		return f
	}
	var a wire.Arrival
	var f *failure
	if l.body, a, f = l.readBody(ctx, l.body, maxWhole); f != nil {
		return f
	}
	c := &l.chunk
	switch known, late := l.find(ctx, l.body); {
	case late != nil:
		return late
	case !known && l.in.ToClose() && c.Short: // nothing else tells that a part is missing
		return failed(measure.Truncated, "the answer was cut short after %d bytes", len(l.body))
	case !known:
		return failed(measure.BadStream, "want a JSON object, got %s", l.client.notJSON(l.body))
	case c.Failed:
		return l.reported()
	case c.Bare:
		return failed(measure.BadStream, "want choices in the answer, got %q", l.client.front(l.body, shownBytes))
	}
	l.answer.finished = true
	if f := l.take(a, req); f != nil {
		return f
	}
	if len(req.Timeline.Chunks) == 0 {
		return failed(measure.Empty, "no content in the answer")
	}
	return nil
}
