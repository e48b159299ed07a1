package openai

import (
	"context"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"replayd/internal/measure"
	"replayd/internal/openai/internal/wire"
)

// An answer is what is known of the stream so far.
type answer struct {
	done     bool     // [DONE] came
	finished bool     // a finish reason came
	settled  *failure // an error event came: the outcome, whatever follows
	drained  int      // bytes read since the outcome was settled
	lastRead uint64   // the read that brought the last content chunk
	merged   bool     // which brought others too
}

// maxChunks bounds a timeline: 8 MiB of it. The longest answers of today's models have about 130,000 tokens.
const maxChunks = 1 << 20

// event acts on one event.
func (x *exchange) event(ctx context.Context, e wire.Event) *failure {
	if string(e.Data) == "[DONE]" {
		x.answer.done = true
		return nil
	}
	x.req.Events++
	c := &x.chunk
	known, late := x.find(ctx, e.Data)
	switch {
	case late != nil:
		return late
	case e.Failed && known && c.Message != "":
		x.answer.settled = x.reported()
	case e.Failed:
		text, most := e.Data, errorTextBytes
		if len(text) == 0 {
			text, most = e.Note, wire.NoteBytes
		}
		x.answer.settled = failed(measure.ErrorEvent, "event: error: %s", x.client.front(text, most))
	case !known && e.Named: // an annotation, not a chunk
	case !known:
		return failed(measure.BadStream, "want a JSON object in a data line, got %s", x.client.notJSON(e.Data))
	case c.Failed:
		x.answer.settled = x.reported()
	default:
		return x.handle(e.Arrival)
	}
	return nil
}

// reported is the failure that a chunk reports. Its words may have been cut, and a credential with them.
func (x *exchange) reported() *failure {
	return failed(measure.ErrorEvent, "%s", x.client.front([]byte(x.chunk.Message), errorBodyBytes-utf8.UTFMax))
}

// longData is what takes so long to read that a deadline may pass meanwhile, in bytes.
const longData = 256 << 10

// find reads data into the lane's chunk. late is why it was not read to its end.
func (x *exchange) find(ctx context.Context, data []byte) (known bool, late *failure) {
	if len(data) > longData {
		return x.findLong(ctx, data)
	}
	return x.chunk.Read(data, nil), nil
}

func (x *exchange) findLong(ctx context.Context, data []byte) (known bool, late *failure) {
	known = x.chunk.Read(data, func() bool {
		late = x.overdue(ctx)
		return late != nil
	})
	return known, late
}

// notJSON shows data that is no JSON object. What began as one is a chunk, of which a text may be private: it is not shown.
func (c *Client) notJSON(data []byte) string {
	if len(data) > 0 && data[0] == '{' {
		return fmt.Sprintf("a broken one of %d bytes", len(data))
	}
	return strconv.Quote(c.front(data, shownBytes))
}

// handle notes what a chunk that came at a says: its time and texts, if it has content, the finish reason, token counts.
func (x *exchange) handle(a wire.Arrival) *failure {
	c := &x.chunk
	if c.Content {
		if len(x.req.Timeline.Chunks) == maxChunks {
			return failed(measure.BadStream, "more than %d chunks", maxChunks)
		}
		x.content(a, &x.req.Timeline)
		if c.Keep {
			x.texts.Add(c)
		}
	}
	if len(c.Finish) > 0 {
		x.answer.finished = true
		if string(c.Finish) != x.req.FinishReason {
			x.req.FinishReason = x.client.words(x.client.front(c.Finish, shownBytes))
		}
	}
	x.told(&x.req.Usage)
	return nil
}

// content puts a content chunk on the timeline.
func (x *exchange) content(a wire.Arrival, t *measure.Timeline) {
	first := len(t.Chunks) == 0
	at, least := a.At.Sub(t.Write), time.Duration(0)
	if !first {
		least = t.Chunks[len(t.Chunks)-1] // a step of the wall clock must not turn time back
	}
	t.Chunks = append(t.Chunks, max(at, least))
	t.Kernel = a.Kernel && (first || t.Kernel)
	if !first && a.Read == x.answer.lastRead {
		if !x.answer.merged {
			x.answer.merged = true
			t.MergedReads++
		}
		return
	}
	x.answer.lastRead, x.answer.merged = a.Read, false
	if a.Kernel {
		t.ReadDelays = append(t.ReadDelays, a.Delay)
	}
}
