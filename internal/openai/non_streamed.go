package openai

import (
	"context"

	"replayd/internal/measure"
	"replayd/internal/openai/internal/wire"
)

// maxWhole bounds an unstreamed answer. The longest ones have a megabyte, and ten times as much with log probabilities.
const maxWhole = 16 << 20

// whole reads the answer's body as one JSON object. It is one chunk with the arrival time of its last byte.
func (x *exchange) whole(ctx context.Context) *failure {
	if f := x.unfit(ctx, jsonObject); f != nil {
		return f
	}
	var a wire.Arrival
	var f *failure
	if x.body, a, f = x.readBody(ctx, x.body, maxWhole); f != nil {
		return f
	}
	c := &x.chunk
	switch known, late := x.find(ctx, x.body); {
	case late != nil:
		return late
	case !known && c.Short && (len(x.body) > 0 || x.in.ToClose()): // a proxy may end an answer properly that its server has cut
		return failed(measure.Truncated, "the answer was cut short after %d bytes", len(x.body))
	case !known:
		return failed(measure.BadStream, "want a JSON object, got %s", x.client.notJSON(x.body))
	case c.Failed:
		return x.reported()
	case c.Bare:
		return failed(measure.BadStream, "want choices in the answer, got %q", x.client.front(x.body, shownBytes))
	}
	x.answer.done = true
	if f := x.handle(a); f != nil {
		return f
	}
	return x.verdict(nil)
}
