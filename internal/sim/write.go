package sim

import (
	"context"
	"net/http"
	"strconv"
	"time"
)

// fail answers with vLLM's error object.
func (x *exchange) fail(status int, kind, text string) {
	x.entry.Status = status
	x.w.Header().Set("Content-Type", "application/json")
	x.w.WriteHeader(status)
	_, _ = x.w.Write(errorJSON(status, kind, text)) // a client that has left needs no error
}

// open sends a stream's headers, at once like uvicorn, not with the first chunk.
func (x *exchange) open(ctx context.Context) error {
	x.entry.Status = http.StatusOK
	x.w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	x.w.WriteHeader(http.StatusOK)
	x.buf = make([]byte, 0, 1024)
	if ctx.Err() != nil {
		return errLeft
	}
	return x.flush()
}

// put gives tokens that are ready to the client: a chunk, and the stream's end if they are the last. Halfway the fault
// happens; an outcome other than "" ends the answer. Without streaming, tokens are only collected.
func (x *exchange) put(ctx context.Context, tokens int, half bool) (outcome string, err error) {
	if !x.request.stream {
		x.buf = x.answer.words(x.buf, tokens)
		if half && (x.fault == FaultCut || x.fault == FaultStalled) {
			x.announce(2 * len(x.buf)) // more than will ever come
			return x.breakOff(ctx)
		}
		return "", nil
	}
	x.buf = x.answer.chunk(x.buf[:0], tokens)
	if half {
		switch x.fault {
		case FaultCut, FaultStalled:
			x.stamp()
			return x.breakOff(ctx)
		case FaultGarbled:
			x.buf = x.answer.garbled(x.buf)
		case FaultErrorEvent:
			x.buf = append(append(x.buf, "data: "...), errorJSON(http.StatusInternalServerError, "InternalServerError", "simulated fault")...)
			x.buf = append(append(x.buf, "\n\n"...), done...)
			x.stamp()
			return FaultErrorEvent, x.flush()
		}
	}
	if x.sent == x.length { // what comes at one instant is written at once
		x.buf = x.answer.end(x.buf, x.reason, x.usage())
	}
	x.stamp()
	return "", x.flush()
}

// finish ends an answer whose tokens were all put.
func (x *exchange) finish() (outcome string, err error) {
	if x.request.stream {
		if x.length > 0 {
			return x.fault, nil
		}
		x.buf = x.answer.end(x.buf[:0], x.reason, x.usage())
		return x.fault, x.flush()
	}
	if x.fault == FaultErrorEvent {
		x.fail(http.StatusInternalServerError, "InternalServerError", "simulated fault")
		return x.fault, nil
	}
	x.buf = x.answer.whole(x.buf, x.reason, usageJSON(x.request.tokens, x.sent, x.cached))
	if x.fault == FaultGarbled {
		x.buf = x.buf[:len(x.buf)/2]
	}
	x.announce(len(x.buf))
	x.stamp()
	// Its length is in its headers, so the client knows the end without ours, and may look at pages and log at once.
	x.held = true
	return x.fault, nil
}

// usage is the object for the stream's end, nil when it was not asked for.
func (x *exchange) usage() []byte {
	if !x.request.usage {
		return nil
	}
	return usageJSON(x.request.tokens, x.sent, x.cached)
}

// announce sets the headers of an unstreamed answer of that many bytes.
func (x *exchange) announce(size int) {
	x.entry.Status = http.StatusOK
	x.w.Header().Set("Content-Type", "application/json")
	x.w.Header().Set("Content-Length", strconv.Itoa(size))
}

// breakOff writes what was generated and leaves the answer unfinished, at once or after a stall.
func (x *exchange) breakOff(ctx context.Context) (outcome string, err error) {
	if err := x.flush(); err != nil {
		return "", err
	}
	if x.fault == FaultStalled {
		x.due = time.Now().Add(stallLimit)
		_ = x.wait(ctx) // either way it is over
	}
	return x.fault, nil
}

// stamp takes the time for the log. It stands before the write, so that what a client measures from it is the way of the
// bytes and not the server's own system call.
func (x *exchange) stamp() {
	if x.engine.options.LogChunks {
		x.entry.Chunks = append(x.entry.Chunks, time.Now().UnixNano())
	}
}

// flush writes the buffer to the connection, in one system call.
func (x *exchange) flush() error {
	if now := time.Now(); x.writable.Sub(now) < writeLimit/2 {
		x.writable = now.Add(writeLimit)
		_ = x.control.SetWriteDeadline(x.writable) // a recorder has no deadlines
	}
	if _, err := x.w.Write(x.buf); err != nil {
		return errLeft
	}
	if x.control.Flush() != nil {
		return errLeft
	}
	return nil
}
