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
func (l *Lane) startUpload(pieces ...[]byte) error {
	if err := l.conn.WriteUntil(time.Time{}); err != nil {
		return err
	}
	c, u := l.conn, &upload{over: make(chan written, 1)}
	l.upload = u
	c.OnWake(l.uploaded)
	u.running.Go(func() {
		err := c.Write(pieces...)
		u.over <- written{time.Now(), err}
		c.Wake() // who waits for the answer
	})
	return nil
}

// uploaded takes notice of the end of the upload, once.
func (l *Lane) uploaded() bool {
	u := l.upload
	select {
	case w := <-u.over:
		u.finished, u.written = true, w
		l.wrote(w)
		return true
	default:
		return false
	}
}

// wrote acts on the end of the write of a message.
func (l *Lane) wrote(w written) {
	l.release()
	switch {
	case w.err != nil && (l.upload == nil || !l.upload.early):
		// A server may refuse a large message before it has read all of it. The refusal can still be read.
		l.limit(time.Now(), drainTime, measure.ConnectFailed)
	case w.err == nil && l.hooks.Cancel:
		l.cancel = w.at.Add(l.hooks.CancelAfter)
		l.sooner(l.cancel, measure.Cancelled)
	}
}

// heard notes that the head of an answer has come. A server that begins to stream is still reading, one that refuses may have
// stopped.
func (l *Lane) heard(status int, at time.Time) {
	if u := l.upload; u != nil && status >= 300 {
		u.early = !u.finished && !l.uploaded() || at.Before(u.written.at)
	}
}

// endUpload waits for the end of the upload, and brings it about where the answer has ended first: at once, unless the server
// is still likely to read. It reports whether the connection can be used again: after a refusal the server may take the rest
// of the message for another request.
func (l *Lane) endUpload() (reusable bool) {
	u := l.upload
	if u == nil {
		return true
	}
	if l.in.Ended() && !u.early {
		_ = l.conn.WriteUntil(time.Now().Add(drainTime)) // a closed connection has ended the upload
	} else {
		l.conn.Cut()
	}
	u.running.Wait()
	if !u.finished {
		l.uploaded()
	}
	l.upload = nil
	l.conn.OnWake(nil)
	return !u.early && u.written.err == nil
}
