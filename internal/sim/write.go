package sim

import (
	"context"
	"net/http"
	"strconv"
	"time"
)

func (x *exchange) fail(status int, kind, text string) {
	x.entry.Status = status
	x.w.Header().Set("Content-Type", "application/json")
	x.w.WriteHeader(status)
	_, _ = x.w.Write(errorJSON(status, kind, text)) // a client that has left needs no error
}

// open sends the headers of a stream at once, as uvicorn does, and not with the first chunk.
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

// reasoned returns how many of the first tokens of the answer are reasoning.
func (x *exchange) reasoned(tokens int) int {
	if x.api != chat {
		return 0
	}
	return min(tokens, x.engine.options.ReasoningTokens)
}

// put sends tokens that are ready: a chunk, and after the last token the end of the stream. If half is set, the fault
// happens. An outcome other than "" ends the answer. Without streaming, put only collects tokens.
func (x *exchange) put(ctx context.Context, tokens int, half bool) (outcome string, err error) {
	reasoning := x.reasoned(x.sent) - x.reasoned(x.sent-tokens)
	if !x.request.stream {
		x.thoughts = x.answer.words(x.thoughts, reasoning)
		x.buf = x.answer.words(x.buf, tokens-reasoning)
		if half && (x.fault == FaultCut || x.fault == FaultStalled) {
			x.announce(2 * len(x.buf)) // more bytes than will be sent
			return x.breakOff(ctx)
		}
		if half && x.fault == FaultAbort {
			x.reason = reasonAbort
			return x.finish()
		}
		return "", nil
	}
	var usage []byte
	if x.request.perChunk {
		usage = x.usage()
	}
	x.buf = x.answer.chunk(x.buf[:0], reasoning, tokens-reasoning, usage)
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
			outcome = x.fault
		case FaultAbort:
			x.buf = x.answer.end(x.buf, reasonAbort, x.usage())
			outcome = x.fault
		}
	}
	if outcome == "" && x.sent == x.length { // the last chunk and the end come at one instant, so one write has both
		x.buf = x.answer.end(x.buf, x.reason, x.usage())
	}
	x.stamp()
	return outcome, x.flush()
}

// finish ends an answer after all its tokens were put.
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
	x.buf = x.answer.whole(x.thoughts, x.buf, x.reason, usageJSON(x.request.tokens, x.sent, x.cached, x.reasoned(x.sent)))
	if x.fault == FaultGarbled {
		x.buf = x.buf[:len(x.buf)/2]
	}
	x.announce(len(x.buf))
	x.stamp()
	// The client knows the end from Content-Length and may read pages and log at once, so the write comes last.
	x.held = true
	return x.fault, nil
}

// usage returns the usage object for the end of the stream, or nil if the request did not ask for it.
func (x *exchange) usage() []byte {
	if !x.request.usage {
		return nil
	}
	return usageJSON(x.request.tokens, x.sent, x.cached, x.reasoned(x.sent))
}

// announce sets the headers of an unstreamed answer of size bytes.
func (x *exchange) announce(size int) {
	x.entry.Status = http.StatusOK
	x.w.Header().Set("Content-Type", "application/json")
	x.w.Header().Set("Content-Length", strconv.Itoa(size))
}

// breakOff writes the output so far and leaves the answer unfinished, at once or after a stall.
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

// stamp takes the time of a chunk for the log, before the write. The latency that a client measures from it is that of
// the bytes, without the server's own system call.
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
	if x.engine.options.Buffer { // net/http writes full buffers, and the last one when the handler returns
		return nil
	}
	if x.control.Flush() != nil {
		return errLeft
	}
	return nil
}
