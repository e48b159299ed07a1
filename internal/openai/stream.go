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
	for !l.in.Ended() {
		if err := l.in.Fill(); err != nil {
			return l.ended(ctx, req, err)
		}
		f, broken := l.pieces(ctx, req)
		switch {
		case f != nil:
			return f
		case broken != nil:
			return l.verdict(req, failed(measure.BadStream, "%v", broken))
		}
		if l.hooks.Read != nil && !l.in.Ended() { // the end of an answer has a time of its own
			l.hooks.Read(l.conn.Last().ReadAt())
		}
		if (l.answer.done || l.answer.settled != nil) && (l.in.ToClose() || l.answer.drained > drainBytes) {
			break // nothing more to learn, and the connection is not worth it
		}
	}
	return l.ended(ctx, req, io.EOF)
}

// pieces takes what one read has brought. broken is what is wrong with the framing.
func (l *Lane) pieces(ctx context.Context, req *measure.Request) (f *failure, broken error) {
	for {
		data, ok, err := l.in.Piece()
		if err != nil || !ok {
			return nil, err
		}
		if f := l.events(ctx, data, req); f != nil {
			return f, nil
		}
	}
}

// events scans a piece of the body and acts on each event that it ends.
func (l *Lane) events(ctx context.Context, data []byte, req *measure.Request) *failure {
	if l.answer.done || l.answer.settled != nil {
		l.answer.drained += len(data)
		return nil
	}
	for len(data) > 0 {
		e, rest, ok, err := l.scan.Next(data, l.conn.Last())
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
			l.limit(e.Arrival.At, l.client.target.Timeouts.Stall, measure.TimeoutStall)
		}
		data = rest
	}
	return nil
}

// ended judges a stream when no more of it will be read: err is io.EOF also where the body has come to its end.
func (l *Lane) ended(ctx context.Context, req *measure.Request, err error) *failure {
	complete := l.in.Ended() || l.in.ToClose() && errors.Is(err, io.EOF)
	if l.answer.done || l.answer.settled != nil {
		return l.verdict(req, nil)
	}
	if f := l.cutShort(ctx, err); f != nil {
		return f
	}
	if e, ok := l.scan.Rest(l.conn.Last()); ok {
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
