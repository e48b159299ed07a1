package openai

import (
	"context"
	"time"

	"github.com/valyala/fasthttp"

	"replayd/internal/measure"
	"replayd/internal/openai/internal/chunk"
	"replayd/internal/openai/internal/wire"
)

// A Lane sends one request at a time. One goroutine uses it at a time. Its buffers outlive a request.
type Lane struct {
	client  *Client
	pod     *pod       // that the next message goes to; nil: none is known
	conn    *wire.Conn // to pod, of the present request; nil: none
	in      *wire.Reader
	head    fasthttp.ResponseHeader
	scan    wire.Scanner
	chunk   chunk.Chunk
	texts   chunk.Texts // their content belongs to the request
	body    []byte      // of an answer in one piece
	first   []byte      // the beginning of a message, with credentials from files and what is sent back
	back    []byte      // line that the next message carries beside its own; empty: none
	echoed  []byte      // see Echoed
	echo    measure.Echo
	unsent  error // see Unsent
	present exchange
}

// Lane returns a lane, aimed at the next pod. The caller must close it.
func (c *Client) Lane() *Lane {
	l := &Lane{client: c, in: wire.NewReader(readBytes)}
	l.present.Lane = l
	l.Aim(c.turn.Add(1) - 1)
	l.head.SetNoDefaultContentType(true) // a missing type stays empty
	return l
}

// Close closes the connection of a request that has begun and was not sent. The lane can be used again.
func (l *Lane) Close() { l.drop() }

func (l *Lane) drop() {
	if l.conn != nil {
		l.conn.Cut()
		l.pod.pool.Drop()
		l.conn = nil
	}
}

// Do sends message (from AppendRequest) and reads its answer to the end: a stream, or one JSON object where the caller
// has set req.Timeline.Whole, as AppendRequest was told. It fills req's Outcome, Error, Status, Replica, Retried, FinishReason,
// Usage, Events, Text and TextCut, and of its Timeline Write, Head, Cancel, End, Connect, Chunks, ReadDelays, MergedReads
// and Kernel; the slices are used again from their beginning.
//
// A kept or warmed connection on which anything came since its last answer, bytes or its end, is replaced before a byte is
// written, where there are descriptors to look at. One that turns out to be stale is replaced once, and the message sent again.
// When ctx is done the connection is closed and the outcome is aborted.
func (l *Lane) Do(ctx context.Context, message []byte, req *measure.Request, h Hooks) {
	read := (*exchange).stream
	if req.Timeline.Whole {
		read = (*exchange).whole
	}
	l.play(ctx, message, req, h, read)
	if req.Outcome == measure.OK {
		l.client.answered.Add(1)
	}
}

// Unsent returns why this process itself kept the last request from being sent: it lacked descriptors, memory or local ports. nil: it did
// not. Such a request has no outcome.
func (l *Lane) Unsent() error { return l.unsent }

// play is Do with the given reader of the body.
func (l *Lane) play(ctx context.Context, message []byte, req *measure.Request, h Hooks, read reader) {
	x := &l.present
	if x.req == nil { // otherwise Begin has begun the exchange
		x.prepare(req)
	}
	x.hooks = h
	x.chunk.Keep = h.Keep || h.Count != nil
	if req.Timeline.Whole {
		x.chunk.Form = chunk.Whole
	}
	x.end(x.run(ctx, message, read))
	l.present = exchange{Lane: l} // keeps nothing of the caller's request and hooks
}

// beginTries is how many connections of the pool Begin checks. If the server has closed them all, a longer search
// would delay the pacer, and with it the next request.
const beginTries = 4

// Begin writes the first bytes of message, as many as the kernel accepts at once, and does not block. It is for a pacer, whose
// thread is awake at the due instant while the lane's must still be woken. Begin returns false, with nothing written, if there
// is no open connection or the transport has no descriptor. Do with the same arguments must follow in both cases; the lane may
// be passed to another goroutine in between.
func (l *Lane) Begin(message []byte, req *measure.Request) bool {
	first, rest, err := l.compose(message)
	if err != nil || !l.ensureConn(time.Now(), beginTries) || !l.conn.Stamped() {
		return false // Do finds the error again
	}
	l.present.prepare(req)
	l.present.writeFirst(first, rest)
	return true
}

// ensureConn has the lane hold an open connection from the pool that a request can go out on: fresh, and silent since its last
// answer. False: there is none, or none among as many of the pool as are to be looked at.
func (l *Lane) ensureConn(now time.Time, tries int) bool {
	if l.conn != nil && l.conn.Silent() { // Begin has found it, and did not use it
		return true
	}
	l.drop()
	if l.pod == nil || l.client.target.Connections == ConnectionsEach {
		return false
	}
	l.conn = l.pod.pool.Take(now, l.client.target.Idle, tries)
	return l.conn != nil
}

// Hooks follow or change one request of a lane. The zero value does nothing.
type Hooks struct {
	// Sent is called once, when the message was written or will not be written. The caller may reuse its bytes then,
	// before the answer has come.
	Sent func()
	// Read is called after each read of a stream was handled, with the time of the read. It must be quick.
	Read func(now time.Time)
	// Again returns the HTTP message for a second attempt, as http.Request.GetBody does. Sent has been called before.
	Again func() ([]byte, error)

	// Cancel ends the request CancelAfter after its message was written, by closing the connection: its outcome is
	// cancelled. An answer or a failure that is complete by then keeps its outcome. A retry counts from its own write.
	Cancel      bool
	CancelAfter time.Duration // 0: the message is written and nothing is read

	// Keep stores the answer's content in req.Text, up to 4 MiB, without reasoning and the arguments of tool calls. Of
	// several choices it stores all contents in the order of arrival.
	Keep bool

	// Echo names the header of the answer that Lane.Echoed returns; nil: none.
	Echo *Echo

	// Count counts the tokens of a text; nil: there is no tokenizer. It is called after the end of an answer without usage: the
	// usage is then that of content, reasoning and arguments, with source text. It stores the content as Keep does. A text
	// that was cut, or that Count has an error for, is not counted.
	Count func(text []byte) (int, error)
}
