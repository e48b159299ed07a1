package openai

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"replayd/internal/measure"
	"replayd/internal/openai/internal/chunk"
	"replayd/internal/scarce"
)

// An exchange is one request of a lane and its answer, from the write of the message to the end of reading. It ends with the
// request.
type exchange struct {
	*Lane
	req    *measure.Request // nil: there is none
	hooks  Hooks            // Sent is nil after it was called
	out    departure
	upload *upload // a write in progress; nil: none
	answer answer

	total  time.Time       // when Timeouts.Total ends; zero: never
	cancel time.Time       // when the request is cancelled; zero: never, or the message is not written yet
	until  time.Time       // the present deadline
	late   measure.Outcome // outcome if the present deadline passes
}

// A reader reads the body of an answer.
type reader func(*exchange, context.Context) *failure

func (x *exchange) prepare(req *measure.Request) {
	t := &req.Timeline
	t.Write, t.Head, t.Cancel, t.End, t.Connect = time.Time{}, time.Time{}, time.Time{}, time.Time{}, 0
	t.Chunks, t.ReasoningChunks, t.ReadDelays, t.MergedReads, t.Kernel = t.Chunks[:0], 0, t.ReadDelays[:0], 0, false
	t.ClockSet, t.Early = false, false
	req.Outcome, req.Error, req.Status, req.Replica, req.Retried = measure.OK, "", 0, "", false
	req.FinishReason, req.Finish, req.Usage, req.Events = "", measure.NoFinish, measure.Usage{}, 0
	req.Unread, req.UnreadText = 0, ""
	x.texts.Content, x.echoed, x.echo = emptied(req.Text), x.echoed[:0], measure.EchoNone
	x.req = req
	if d := x.client.target.Timeouts.Total; d > 0 {
		x.total = time.Now().Add(d)
	}
}

// run makes one attempt, over the connection that Begin has used, the lane's own, one from the pool or a new one. If a kept connection
// turns out to be closed, it makes a second attempt over a new one.
func (x *exchange) run(ctx context.Context, message []byte, read reader) *failure {
	if !x.out.begun() {
		if x.out.kept = x.ensureConn(time.Now(), math.MaxInt); !x.out.kept {
			if f := x.dial(ctx); f != nil {
				return f
			}
		}
	}
	f := x.attempt(ctx, message, read)
	if f == nil || !f.stale {
		return f
	}
	message, err := x.hooks.Again()
	if err != nil {
		f.text += fmt.Sprintf("; not sent again: %v", err)
		return f
	}
	x.drop()
	x.req.Status = 0 // of a 408
	if f := x.dial(ctx); f != nil {
		return f
	}
	x.req.Retried, x.req.Timeline.Connect = true, 0 // the new connection is a part of TTFT
	x.out, x.cancel = departure{}, time.Time{}
	return x.attempt(ctx, message, read)
}

func (x *exchange) dial(ctx context.Context) *failure {
	start := time.Now()
	if x.pod != nil {
		x.pod.pool.Open()
	}
	c, f := x.client.connect(ctx, x.pod, x.total)
	if f != nil {
		if x.pod != nil {
			x.pod.pool.Drop()
		}
		return f
	}
	x.conn, x.req.Timeline.Connect = c, time.Since(start)
	return nil
}

// attempt sends the message and reads the answer over the lane's connection, once.
func (x *exchange) attempt(ctx context.Context, message []byte, read reader) *failure {
	x.in.Reset(x.conn)
	stop := context.AfterFunc(ctx, x.conn.Cut)
	f := x.send(ctx, message)
	if f == nil {
		f = x.awaitHead(ctx)
	}
	if f == nil {
		f = read(x, ctx)
	}
	if f != nil && f.outcome != measure.Aborted && scarce.Met(cmp.Or(x.out.err, x.conn.Err())) {
		f = failed(measure.Aborted, "replayd itself lacks a resource: %s", f.text)
	}
	if f != nil && f.outcome == measure.Cancelled {
		x.req.Timeline.Cancel = time.Now() // before anybody can see it
	}
	reusable := x.endUpload()
	// A connection can be reused only after a complete answer with no data behind it.
	closing := x.head.ConnectionClose() || bytes.EqualFold(x.head.Peek("Connection"), []byte("close"))
	if stop() && reusable && x.in.Clean() && !closing {
		x.rest()
	} else {
		x.drop()
	}
	return f
}

// end sets the outcome of the request and empties the lane's buffers for the next.
func (x *exchange) end(f *failure) {
	x.release()
	x.unsent = nil
	if f != nil && f.unsent {
		x.unsent = LackError(x.client.Redact(f.text))
	}
	if f != nil {
		x.req.Outcome, x.req.Error = f.outcome, x.client.Redact(f.text)
	}
	x.req.Timeline.End = time.Now()
	x.settleUsage()
	x.req.Text, x.req.TextCut = x.texts.Content, x.texts.ContentCut
	x.chunk = chunk.Chunk{}
	x.texts = chunk.Texts{Reasoning: emptied(x.texts.Reasoning), Calls: emptied(x.texts.Calls)}
	x.body = emptied(x.body)
	x.scan.Reset()
}

// release calls Hooks.Sent once: the message buffer is free.
func (x *exchange) release() {
	if x.hooks.Sent != nil {
		x.hooks.Sent()
		x.hooks.Sent = nil
	}
}

// usualBytes is the largest buffer that is kept for the next answer.
const usualBytes = 64 << 10

// emptied returns b with length 0 for the next answer, or nil if b is larger than usualBytes.
func emptied(b []byte) []byte {
	if cap(b) > usualBytes {
		return nil
	}
	return b[:0]
}
