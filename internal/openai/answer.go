package openai

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"replayd/internal/measure"
	"replayd/internal/openai/internal/chunk"
	"replayd/internal/openai/internal/wire"
)

// An answer is the state of reading a stream.
type answer struct {
	done     bool     // [DONE] came
	finished bool     // a finish reason came that ends well
	gaveUp   bool     // one came that means that the server gave up
	settled  *failure // outcome after an error event, whatever follows; nil: none came
	drained  int      // bytes read since the outcome was settled
	lastRead uint64   // the read that brought the last content chunk
	merged   bool     // that read brought other content chunks, too
	reasoned bool     // reasoning came
	answered bool     // text or a tool call came
	tally    tally
}

// over reports whether the outcome is settled and nothing more is read.
func (a *answer) over() bool { return a.done || a.settled != nil }

// complete reports whether the answer has its end and its usage. No later event is a failure, and the wait for
// one is short.
func (a *answer) complete() bool {
	return (a.finished || a.gaveUp) && a.tally.source == measure.UsageFinal
}

// maxChunks bounds a timeline: 8 MiB of it. The longest answers of today's models have about 130,000 tokens.
const maxChunks = 1 << 20

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
	case !known && e.Named && !e.Failed, // an annotation
		x.answer.complete() && (e.Failed || !known || x.fails()):
		x.unread(x.shown(known, e))
	case e.Failed && known && c.Message != "":
		x.answer.settled = x.reported()
	case e.Failed:
		text, most := e.Data, errorTextBytes
		if len(text) == 0 {
			text, most = e.Note, wire.NoteBytes
		}
		x.answer.settled = failed(measure.ErrorEvent, "event: error: %s", x.client.front(text, most))
	case !known:
		return failed(measure.BadStream, "want a JSON object in a data line, got %s", x.client.notJSON(e.Data))
	case c.Failed:
		x.answer.settled = x.reported()
	default:
		return x.handle(e.Arrival)
	}
	return nil
}

// fails reports whether the present chunk is an error, or takes back a proper end.
func (x *exchange) fails() bool {
	_, aborts := chunk.EndOf(x.chunk.Finish)
	return x.chunk.Failed || x.answer.finished && aborts
}

// shown returns the part of an event that may be shown: not the text of half a chunk, which may be private.
func (x *exchange) shown(known bool, e wire.Event) []byte {
	switch {
	case len(e.Data) == 0:
		return append([]byte("event: error "), e.Note...)
	case !known && e.Data[0] == '{':
		return []byte(x.client.notJSON(e.Data))
	}
	return e.Data
}

// unread counts an event, or a part of one, that has no meaning, and keeps the beginning of the first.
func (x *exchange) unread(data []byte) {
	if x.req.Unread == 0 {
		x.req.UnreadText = x.client.Redact(x.client.front(data, shownBytes))
	}
	x.req.Unread++
}

// reported returns the failure that a chunk reports. Its text may have been cut in the middle of a credential.
func (x *exchange) reported() *failure {
	return failed(measure.ErrorEvent, "%s", x.client.front([]byte(x.chunk.Message), errorBodyBytes-utf8.UTFMax))
}

// longData is the size in bytes from which parsing can take so long that a deadline passes meanwhile.
const longData = 256 << 10

// find parses data into the lane's chunk. late says why it was not parsed to its end.
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

// notJSON describes data that is not a JSON object. Data that begins like one is a chunk, whose text may be private, and is not shown.
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
		if len(x.req.Timeline.Chunks) == 0 && x.client.target.PerChunk && c.Usage.HasOutput {
			x.answer.tally.opening = c.Usage.Output
		}
		x.content(a, &x.req.Timeline)
		x.kind(&x.req.Timeline)
		if c.Keep {
			x.texts.Add(c)
		}
	}
	if len(c.Unread) > 0 {
		x.unread(c.Unread)
	}
	x.noteEnd(c.Finish)
	x.answer.tally.note(c, c.Bare || x.answer.done || x.answer.finished || x.answer.gaveUp)
	return nil
}

// noteEnd notes a finish reason. One that means that the server gave up is not replaced.
func (x *exchange) noteEnd(reason []byte) {
	if len(reason) == 0 || x.answer.gaveUp {
		return
	}
	name, aborts := chunk.EndOf(reason)
	x.answer.finished, x.answer.gaveUp = !aborts, aborts
	if x.req.Finish = cmp.Or(name, measure.OtherFinish); string(reason) != string(x.req.FinishReason) {
		x.req.FinishReason = x.client.Redact(x.client.front(reason, shownBytes))
	}
}

// kind counts the latest content chunk among those of reasoning until the first of the answer. A chunk of token ids alone is of the same
// kind as the text that follows.
func (x *exchange) kind(t *measure.Timeline) {
	a, c := &x.answer, &x.chunk
	if a.answered {
		return
	}
	a.reasoned, a.answered = a.reasoned || c.Thought, c.Answer
	switch {
	case !a.reasoned:
		t.ReasoningChunks = 0
	case a.answered:
		t.ReasoningChunks = len(t.Chunks) - 1
	default:
		t.ReasoningChunks = len(t.Chunks)
	}
}

func (x *exchange) content(a wire.Arrival, t *measure.Timeline) {
	first := len(t.Chunks) == 0
	at, least := a.At.Sub(t.Write), time.Duration(0)
	if first {
		t.Early = at < -wire.ClockError
	} else {
		least = t.Chunks[len(t.Chunks)-1] // a step of the wall clock must not turn time back
	}
	t.ClockSet = t.ClockSet || a.Unsure
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
