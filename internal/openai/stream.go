package openai

import (
	"context"
	"errors"
	"io"
	"time"

	"replayd/internal/measure"
)

// stream reads the answer's body as server-sent events, up to the end of the body.
func (l *Lane) stream(ctx context.Context, req *measure.Request) *failure {
	if f := l.unfit(ctx, req, eventStream); f != nil {
		return f
	}
	for !l.frame.ended {
		if _, err := l.in.Peek(1); err != nil { // one socket read, when nothing is buffered
			return l.ended(ctx, req, err)
		}
		b, _ := l.in.Peek(l.in.Buffered())
		all := len(b)
		for len(b) > 0 && !l.frame.ended {
			data, rest, err := l.frame.next(b)
			if err != nil {
				return l.verdict(req, failed(measure.BadStream, "%v", err))
			}
			if f := l.events(ctx, data, req); f != nil {
				return f
			}
			b = rest
		}
		_, _ = l.in.Discard(all - len(b))          // cannot fail: it is buffered
		if l.hooks.Read != nil && !l.frame.ended { // the end of an answer has a time of its own
			l.hooks.Read(l.conn.wire.last.at.Add(l.conn.wire.last.delay))
		}
		if (l.answer.done || l.answer.settled != nil) && (l.frame.mode == byClose || l.answer.drained > drainBytes) {
			break // nothing more to learn, and the connection is not worth it
		}
	}
	return l.ended(ctx, req, io.EOF)
}

// events scans a piece of the body and acts on each event that it ends.
func (l *Lane) events(ctx context.Context, data []byte, req *measure.Request) *failure {
	if l.answer.done || l.answer.settled != nil {
		l.answer.drained += len(data)
		return nil
	}
	for len(data) > 0 {
		e, rest, ok, err := l.scan.next(data, l.conn.wire.last)
		if err != nil {
			return failed(measure.BadStream, "%v", err)
		}
		if !ok {
			return nil
		}
		if f := l.event(ctx, e, req); f != nil {
			return f
		}
		if l.answer.done || l.answer.settled != nil {
			l.limit(time.Now(), drainTime, l.late)
			return nil
		}
		if len(req.Timeline.Chunks) > 0 {
			l.limit(e.arrival.at, l.client.target.Timeouts.Stall, measure.TimeoutStall)
		}
		data = rest
	}
	return nil
}

// ended judges a stream when no more of it will be read: err is io.EOF also where the body has come to its end.
func (l *Lane) ended(ctx context.Context, req *measure.Request, err error) *failure {
	complete := l.frame.ended || l.frame.mode == byClose && errors.Is(err, io.EOF)
	if l.answer.done || l.answer.settled != nil {
		return l.verdict(req, nil)
	}
	if f := l.cutShort(ctx, err); f != nil {
		return f
	}
	if e, ok := l.scan.rest(l.conn.wire.last); ok {
		if f := l.event(ctx, e, req); f != nil {
			req.Events-- // half of one
		}
	}
	if complete {
		return l.verdict(req, failed(measure.Truncated, "the stream ended without [DONE] or a finish reason"))
	}
	return l.verdict(req, failed(measure.Truncated, "cut off without [DONE] or a finish reason: %v", err))
}

// verdict is the outcome of a stream that is over; otherwise is the failure without a proper end.
func (l *Lane) verdict(req *measure.Request, otherwise *failure) *failure {
	switch {
	case l.answer.settled != nil:
		return l.answer.settled
	case !l.answer.done && !l.answer.finished:
		return otherwise
	case len(req.Timeline.Chunks) == 0:
		return failed(measure.Empty, "no content in the answer")
	}
	return nil
}
