package openai

import (
	"context"
	"errors"
	"os"
	"time"

	"replayd/internal/measure"
)

// A departure is the state of a write.
type departure struct {
	first, rest []byte // bytes still to be written; nil: the write has not begun
	err         error  // of the write so far
	kept        bool   // over a connection that was open before, and may turn out to be closed
}

// begun says whether the write of the message has begun.
func (d *departure) begun() bool { return d.first != nil }

// beginBytes bounds the first write of Begin. So requests due at one instant do not wait for each other's whole bodies.
const beginBytes = 16 << 10

// writeFirst writes the first bytes, as far as the kernel takes them at once. The lane holds a kept connection.
func (x *exchange) writeFirst(first, rest []byte) {
	x.out = departure{first: first, rest: rest, err: x.arm(), kept: true}
	if x.out.err == nil {
		var n int
		n, x.out.err = x.conn.Offer(first[:min(len(first), beginBytes)])
		x.out.first = first[n:]
	}
}

// arm sets the deadline of a request whose write begins now. All times of one that is sent again count from its first write.
func (x *exchange) arm() error {
	firstToken := x.client.target.Timeouts.FirstToken
	if x.req.Timeline.Whole {
		firstToken = 0 // there will be none to wait for
	}
	now := time.Now()
	if x.req.Retried {
		now = x.req.Timeline.Write
	}
	x.limit(now, firstToken, measure.TimeoutFirstToken)
	err := x.conn.Arm(x.until)
	if !x.req.Retried {
		x.req.Timeline.Write = time.Now()
	}
	return err
}

// send writes the message or the rest that Begin left; a large one by an upload.
func (x *exchange) send(ctx context.Context, message []byte) *failure {
	if !x.out.begun() {
		first, rest, err := x.compose(message)
		if err != nil {
			return notBuilt(err)
		}
		x.out.first, x.out.rest, x.out.err = first, rest, x.arm()
	}
	first, rest, err := x.out.first, x.out.rest, x.out.err
	at := x.req.Timeline.Write       // by Begin, at once
	if err == nil && x.conn.Left() { // the rest of Begin
		err = x.conn.Flush()
		at = time.Now()
	}
	switch {
	case err != nil || len(first)+len(rest) == 0:
	case len(first)+len(rest) > uploadBytes:
		err = x.startUpload(first, rest)
	default:
		err = x.conn.Write(first, rest)
		at = time.Now()
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return x.cutShort(ctx, err)
	}
	x.out.err = err
	if x.upload == nil {
		x.wrote(written{at, err})
	}
	return nil
}
