package openai

import (
	"sync"
	"time"

	"replayd/internal/measure"
)

// uploadBytes is the size of what is left of a message from which it is written beside the wait for its answer. Less than that
// finds room in the buffers of both ends, so that its write does not wait for the server to read.
const uploadBytes = 32 << 10

// An upload writes the rest of a large message while its answer is awaited: a server may refuse it before it has read it all,
// and then read no more.
type upload struct {
	running  sync.WaitGroup
	over     chan written // holds one
	finished bool         // over was taken notice of
	written  written      // what it said
	early    bool         // the server refused the message before it was written
}

// written is how a write ended.
type written struct {
	at  time.Time
	err error
}

// startUpload starts one. From then on only the end of the connection ends it: what is awaited are the answer's deadlines.
func (x *exchange) startUpload(pieces ...[]byte) error {
	if err := x.conn.SetWriteDeadline(time.Time{}); err != nil {
		return err
	}
	c, u := x.conn, &upload{over: make(chan written, 1)}
	x.upload = u
	c.Wakes = x.uploaded
	u.running.Go(func() {
		err := c.Write(pieces...)
		u.over <- written{time.Now(), err}
		c.Wake() // who waits for the answer
	})
	return nil
}

// uploaded records the end of the upload. It reports whether the upload ended since the last call.
func (x *exchange) uploaded() bool {
	u := x.upload
	select {
	case w := <-u.over:
		u.finished, u.written = true, w
		x.wrote(w)
		return true
	default:
		return false
	}
}

// wrote acts on the end of the write of a message.
func (x *exchange) wrote(w written) {
	x.release()
	switch {
	case w.err != nil && (x.upload == nil || !x.upload.early):
		// A server may refuse a large message before it has read all of it. The refusal can still be read.
		x.limit(time.Now(), drainTime, measure.ConnectFailed)
	case w.err == nil && x.hooks.Cancel:
		x.cancel = w.at.Add(x.hooks.CancelAfter)
		x.sooner(x.cancel, measure.Cancelled)
	}
}

// noteHead notes that the head of an answer has come. A server that begins to stream is still reading, one that
// refuses may have stopped.
func (x *exchange) noteHead(status int, at time.Time) {
	if u := x.upload; u != nil && status >= 300 {
		u.early = !u.finished && !x.uploaded() || at.Before(u.written.at)
	}
}

// endUpload waits for the end of the upload, and brings it about where the answer has ended first: at once, unless the server
// is still likely to read. It reports whether the connection can be used again: after a refusal the server may take the rest
// of the message for another request.
func (x *exchange) endUpload() (reusable bool) {
	u := x.upload
	if u == nil {
		return true
	}
	if x.in.Ended() && !u.early {
		_ = x.conn.SetWriteDeadline(time.Now().Add(drainTime)) // a closed connection has ended the upload
	} else {
		x.conn.Cut()
	}
	u.running.Wait()
	if !u.finished {
		x.uploaded()
	}
	x.upload = nil
	x.conn.Wakes = nil
	return !u.early && u.written.err == nil
}
