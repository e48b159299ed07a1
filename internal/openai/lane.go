package openai

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"time"

	"github.com/valyala/fasthttp"

	"replayd/internal/measure"
	"replayd/internal/openai/internal/chunk"
	"replayd/internal/openai/internal/wire"
)

// A Lane plays one request at a time over a connection of its own. It is used by one goroutine at a time.
type Lane struct {
	client *Client
	conn   *wire.Conn // nil: none
	in     *wire.Reader
	head   fasthttp.ResponseHeader
	scan   wire.Scanner
	chunk  chunk.Chunk
	answer answer

	total  time.Time       // when Timeouts.Total ends; zero: never
	cancel time.Time       // when the request is to be cancelled; zero: never, or its message is not written
	until  time.Time       // the present deadline
	late   measure.Outcome // what running into the present deadline means
	hooks  Hooks           // Sent is nil when it was called
	begun  begun
	first  []byte  // the beginning of a message, with credentials from files
	upload *upload // nil: the message is written, or not yet

	body  []byte      // of an answer in one piece
	texts chunk.Texts // its content is the request's
}

// headBytes bounds the head of an answer. readBytes is a lane's buffer until a head needs more: heads have some hundred
// bytes, and most of a lane's memory is this.
const (
	headBytes = 16 << 10
	readBytes = 4 << 10
)

// Bounds of what is read once the outcome is settled, only so that the connection can be kept.
const (
	drainTime  = time.Second
	drainBytes = 64 << 10
)

// Lane gives a lane without a connection. Close it.
func (c *Client) Lane() *Lane {
	return &Lane{client: c, in: wire.NewReader(readBytes)}
}

// Fresh reports whether the lane holds a connection that will be used at now, so that nothing need be dialled, unless it
// turns out to have ended.
func (l *Lane) Fresh(now time.Time) bool {
	return l.conn != nil && l.conn.Fresh(now, l.client.target.Idle)
}

// Close closes the lane's connection. The lane can be used again, and dials then.
func (l *Lane) Close() { l.drop() }

func (l *Lane) drop() {
	if l.conn != nil {
		l.conn.Cut()
		l.conn = nil
	}
}

// Do sends message (from AppendRequest) and reads its answer to the end: a stream, or one JSON object where the caller
// has set req.Timeline.Whole, as AppendRequest was told. It fills req's Outcome, Error, Status, Retried, FinishReason,
// Usage, Events, Text and TextCut, and of its Timeline Write, Head, Cancel, End, Connect, Chunks, ReadDelays, MergedReads
// and Kernel; the slices are used again from their beginning.
//
// A kept or warmed connection on which anything came since its last answer, bytes or its end, is replaced before a byte is
// written, where there are descriptors to look at. One that turns out to be closed before any byte of an answer is replaced once, and the message sent again.
// When ctx is done the connection is closed and the outcome is aborted.
func (l *Lane) Do(ctx context.Context, message []byte, req *measure.Request, h Hooks) {
	read := l.stream
	if req.Timeline.Whole {
		read = l.whole
	}
	l.run(ctx, message, req, h, read)
}

// hold has the lane hold an open connection that a request can go out on, its own or one from the stock: fresh, and silent
// since its last answer. False: there is none, or none among as many of the stock as are to be looked at.
func (l *Lane) hold(now time.Time, looks int) bool {
	if l.Fresh(now) && l.conn.Silent() {
		return true
	}
	l.drop()
	for range looks {
		if l.conn = l.client.stock.Take(now, l.client.target.Idle); l.conn == nil {
			return false
		}
		if l.conn.Silent() {
			return true
		}
		l.drop()
	}
	return false
}

// beginLooks is how many connections of the stock Begin looks at: where a server has closed them all, the next request waits for
// the pacer.
const beginLooks = 4

// Begin writes the first bytes of message, as far as the kernel takes them at once, and returns without waiting: it is
// for a pacer, whose own thread is awake at the due instant while the lane's has yet to be woken. It is false, and nothing was written, when
// that cannot be: no open connection at hand, a transport without descriptors. Do with the same arguments must follow,
// whatever Begin says; the lane may be handed to another goroutine in between.
func (l *Lane) Begin(message []byte, req *measure.Request) bool {
	first, rest, err := l.compose(message)
	if err != nil || !l.hold(time.Now(), beginLooks) || !l.conn.Stamped() {
		return false // Do says why
	}
	l.prepare(req)
	l.begun = begun{on: true, first: first, rest: rest, err: l.arm(req)}
	if l.begun.err == nil {
		var n int
		n, l.begun.err = l.conn.Offer(first[:min(len(first), beginBytes)])
		l.begun.first = first[n:]
	}
	return true
}

// beginBytes is what Begin writes at most: the head and the beginning of the body. So of many rows due at one instant
// none waits for the whole of another.
const beginBytes = 16 << 10

// begun is what Begin has done of a request.
type begun struct {
	on          bool   // it has begun one
	first, rest []byte // what is still to be written
	err         error
}

// prepare makes a request and the lane's own state ready for a new answer.
func (l *Lane) prepare(req *measure.Request) {
	t := &req.Timeline
	t.Write, t.Head, t.Cancel, t.End, t.Connect = time.Time{}, time.Time{}, time.Time{}, time.Time{}, 0
	t.Chunks, t.ReadDelays, t.MergedReads, t.Kernel = t.Chunks[:0], t.ReadDelays[:0], 0, false
	req.Outcome, req.Error, req.Status, req.Retried = measure.OK, "", 0, false
	req.FinishReason, req.Usage, req.Events = "", measure.Usage{}, 0
	l.texts.Content = emptied(req.Text)
	l.begun, l.total, l.cancel = begun{}, time.Time{}, time.Time{}
	if d := l.client.target.Timeouts.Total; d > 0 {
		l.total = time.Now().Add(d)
	}
	l.answer = answer{}
}

// run is Do with any reader for what follows the head of the answer.
func (l *Lane) run(ctx context.Context, message []byte, req *measure.Request, h Hooks, read func(context.Context, *measure.Request) *failure) {
	if !l.begun.on {
		l.prepare(req)
	}
	l.hooks = h
	l.chunk.Keep = h.Keep || h.Count != nil
	if req.Timeline.Whole {
		l.chunk.Form = chunk.Whole
	}
	f := l.attempt(ctx, message, req, read, false)
	if f != nil && f.stale {
		again, err := h.Again()
		if err == nil {
			f = l.attempt(ctx, again, req, read, true)
		} else {
			f = failed(measure.ConnectFailed, "%s; and again: %v", f.text, err)
		}
	}
	l.release()
	if f != nil {
		req.Outcome, req.Error = f.outcome, l.client.words(f.text)
	}
	req.Timeline.End = time.Now()
	l.settleUsage(req)
	req.Text, req.TextCut = l.texts.Content, l.texts.ContentCut
	l.hooks = Hooks{} // what they hold is the caller's
	l.chunk = chunk.Chunk{}
	l.texts = chunk.Texts{Reasoning: emptied(l.texts.Reasoning), Arguments: emptied(l.texts.Arguments)}
	l.body = emptied(l.body)
	l.scan.Reset()
}

func (l *Lane) release() {
	if l.hooks.Sent != nil {
		l.hooks.Sent()
		l.hooks.Sent = nil
	}
}

// attempt is one try over one connection: the lane's own, one from the stock, or a new one. Again is the second
// try, for which only a new one will do.
func (l *Lane) attempt(ctx context.Context, message []byte, req *measure.Request, read func(context.Context, *measure.Request) *failure, again bool) *failure {
	kept := false
	switch {
	case again:
		l.drop()
	case l.begun.on:
		kept = true
	default:
		kept = l.hold(time.Now(), math.MaxInt)
	}
	if !kept {
		start := time.Now()
		c, f := l.client.connect(ctx, l.total)
		if f != nil {
			return f
		}
		l.conn, req.Timeline.Connect = c, time.Since(start)
	}
	req.Retried = again
	l.cancel = time.Time{}
	l.in.Reset(l.conn)
	stop := context.AfterFunc(ctx, l.conn.Cut)
	f := l.send(ctx, message, req, kept)
	if f == nil {
		f = read(ctx, req)
	}
	if f != nil && f.outcome == measure.Cancelled {
		req.Timeline.Cancel = time.Now() // before anybody can see it
	}
	reusable := l.endUpload()
	// Only a connection on which one answer came to its end, and nothing behind it, can carry the next.
	if stop() && reusable && l.in.Clean() && !l.closing() {
		l.conn.Used(time.Now())
	} else {
		l.drop()
	}
	return f
}

func (l *Lane) closing() bool {
	return l.head.ConnectionClose() || bytes.EqualFold(l.head.Peek("Connection"), []byte("close"))
}

// arm sets the deadline of a request whose write begins now.
func (l *Lane) arm(req *measure.Request) error {
	firstToken := l.client.target.Timeouts.FirstToken
	if req.Timeline.Whole {
		firstToken = 0 // there will be none to wait for
	}
	l.limit(time.Now(), firstToken, measure.TimeoutFirstToken)
	err := l.conn.Arm(l.until)
	req.Timeline.Write = time.Now()
	return err
}

// send writes what is left of the message and reads the head of its answer, interim ones passed over.
func (l *Lane) send(ctx context.Context, message []byte, req *measure.Request, kept bool) *failure {
	first, rest, err := l.begun.first, l.begun.rest, l.begun.err
	if !l.begun.on {
		if first, rest, err = l.compose(message); err != nil {
			return failed(measure.ConnectFailed, "%v", err)
		}
		err = l.arm(req)
	}
	l.begun = begun{}
	at := req.Timeline.Write         // by Begin, at once
	if err == nil && l.conn.Left() { // what Begin had to leave
		err = l.conn.Flush()
		at = time.Now()
	}
	switch {
	case err != nil || len(first)+len(rest) == 0:
	case len(first)+len(rest) > uploadBytes:
		err = l.startUpload(first, rest)
	default:
		err = l.conn.Write(first, rest)
		at = time.Now()
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return l.cutShort(ctx, err)
	}
	if l.upload == nil {
		l.wrote(written{at, err})
	}
	if peeked := l.in.Fill(); peeked != nil {
		if l.upload != nil {
			l.uploaded()
			err = l.upload.written.err
		}
		if err == nil {
			err = peeked
		}
		f := l.cutShort(ctx, err)
		if f == nil {
			f = failed(measure.ConnectFailed, "closed before any byte of an answer: %v", err)
			f.stale = kept
		}
		return f
	}
	const maxInterim = 10
	for range maxInterim {
		if err := l.readHead(); err != nil {
			return l.badHead(ctx, err)
		}
		if s := l.head.StatusCode(); s >= 200 || s < 100 || s == fasthttp.StatusSwitchingProtocols {
			req.Status = s
			req.Timeline.Head = later(l.conn.Last().At, req.Timeline.Write)
			l.heard(s, req.Timeline.Head)
			l.in.Body(l.head.ContentLength(), s)
			return nil
		}
	}
	return failed(measure.BadStream, "want an answer, got %d interim ones", maxInterim)
}

// readHead reads one head. A buffer that one has made larger stays so: the next from this server will be as long.
func (l *Lane) readHead() error {
	err := l.head.Read(l.in.Head())
	var small *fasthttp.ErrSmallBuffer
	if l.in.Room() == headBytes || !errors.As(err, &small) {
		return err
	}
	l.in.MakeRoom(headBytes)
	return l.head.Read(l.in.Head())
}

// badHead tells apart why the head of an answer could not be read.
func (l *Lane) badHead(ctx context.Context, err error) *failure {
	got := l.in.Front(shownBytes)
	var large *fasthttp.ErrSmallBuffer
	switch {
	case l.conn.Err() == nil && errors.As(err, &large):
		return failed(measure.BadStream, "the head of the answer is over 16 KiB")
	case l.conn.Err() == nil: // all bytes so far were read, and are wrong
		return failed(measure.BadStream, "not an HTTP answer: %q", l.client.front(got, shownBytes))
	}
	if f := l.cutShort(ctx, l.conn.Err()); f != nil {
		return f
	}
	if http := []byte("HTTP/1."); !bytes.HasPrefix(got, http[:min(len(got), len(http))]) {
		return failed(measure.BadStream, "not an HTTP answer: %q", l.client.front(got, shownBytes))
	}
	return failed(measure.Truncated, "the answer ended within its head: %v", l.conn.Err())
}
