package openai

import (
	"context"
	"errors"
	"io"
	"time"

	"replayd/internal/measure"
)

// stream reads the answer's body as server-sent events, up to the end of the body.
func (x *exchange) stream(ctx context.Context) *failure {
	if f := x.unfit(ctx, eventStream); f != nil {
		return f
	}
	for !x.in.Ended() {
		if err := x.in.Fill(); err != nil {
			return x.ended(ctx, err)
		}
		f, broken := x.pieces(ctx)
		switch {
		case f != nil && x.answer.complete():
			return x.verdict(nil)
		case f != nil:
			return f
		case broken != nil:
			return x.verdict(failed(measure.BadStream, "%v", broken))
		}
		if x.hooks.Read != nil && !x.in.Ended() { // the end of an answer has a time of its own
			x.hooks.Read(x.conn.Last.ReadAt())
		}
		if x.answer.over() && (x.in.ToClose() || x.answer.drained > drainBytes) {
			break // nothing more to learn, and the connection is not worth it
		}
	}
	return x.ended(ctx, io.EOF)
}

// pieces scans the bytes of one read. broken is an error of the chunked framing.
func (x *exchange) pieces(ctx context.Context) (f *failure, broken error) {
	for {
		data, ok, err := x.in.Piece()
		if err != nil || !ok {
			return nil, err
		}
		if f := x.events(ctx, data); f != nil {
			return f, nil
		}
	}
}

// events scans a piece of the body and acts on each event that it ends.
func (x *exchange) events(ctx context.Context, data []byte) *failure {
	if x.answer.over() {
		x.answer.drained += len(data)
		return nil
	}
	for len(data) > 0 {
		e, rest, ok, err := x.scan.Next(data, x.conn.Last)
		if err != nil {
			return failed(measure.BadStream, "%v", err)
		}
		if !ok {
			return nil
		}
		complete, contents := x.answer.complete(), len(x.req.Timeline.Chunks)
		if f := x.event(ctx, e); f != nil {
			return f
		}
		switch {
		case x.answer.over():
			x.limit(time.Now(), drainTime, x.late)
			return nil
		case x.answer.complete() && (!complete || len(x.req.Timeline.Chunks) > contents):
			x.limit(e.Arrival.At, drainTime, x.late)
		case x.answer.complete():
		case len(x.req.Timeline.Chunks) > 0:
			x.limit(e.Arrival.At, x.client.target.Timeouts.Stall, measure.TimeoutStall)
		}
		data = rest
	}
	return nil
}

// ended judges a stream when no more of it will be read: err is io.EOF also where the body has come to its end.
func (x *exchange) ended(ctx context.Context, err error) *failure {
	complete := x.in.Ended() || x.in.ToClose() && errors.Is(err, io.EOF)
	if x.answer.over() {
		return x.verdict(nil)
	}
	if f := x.cutShort(ctx, err); f != nil {
		if own := f.outcome == measure.Cancelled || f.outcome == measure.Aborted; own && !x.answer.complete() {
			return f
		}
		return x.verdict(f)
	}
	if e, ok := x.scan.Rest(x.conn.Last); ok {
		if f := x.event(ctx, e); f != nil {
			x.req.Events-- // half of one
		}
	}
	if complete {
		return x.verdict(failed(measure.Truncated, "the stream ended without [DONE] or a finish reason"))
	}
	return x.verdict(failed(measure.Truncated, "cut off without [DONE] or a finish reason: %v", err))
}

// verdict is the outcome of a stream that is over; otherwise is the failure without a proper end.
func (x *exchange) verdict(otherwise *failure) *failure {
	switch {
	case x.answer.settled != nil:
		return x.answer.settled
	case x.answer.gaveUp:
		return failed(measure.ServerAbort, "the server ended the answer with finish_reason %s", x.req.FinishReason)
	case !x.answer.done && !x.answer.finished:
		return otherwise
	case len(x.req.Timeline.Chunks) == 0:
		return failed(measure.Empty, "no content in the answer")
	}
	return nil
}
