package openai

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"replayd/internal/measure"
)

// headBytes bounds the head of an answer. readBytes is the size of a lane's read buffer until a head needs more: heads have
// some hundred bytes, and this buffer is most of a lane's memory.
const (
	headBytes = 16 << 10
	readBytes = 4 << 10
)

// interimBytes bounds the heads of interim answers together: some servers send one as a heartbeat.
const interimBytes = 64 << 10

// awaitHead waits for the answer and reads its head. It skips interim answers (1xx).
func (x *exchange) awaitHead(ctx context.Context) *failure {
	if err := x.in.Fill(); err != nil {
		return x.noAnswer(ctx, err)
	}
	for interim := 0; interim <= interimBytes; interim += len("HTTP/1.1 100\r\n\r\n") {
		if err := x.readHead(); err != nil {
			return x.badHead(ctx, err)
		}
		if s := x.head.StatusCode(); s >= 200 || s < 100 || s == fasthttp.StatusSwitchingProtocols {
			x.req.Status = s
			if s == fasthttp.StatusRequestTimeout && x.stale(true) {
				f := failed(measure.HTTP4xx, "HTTP 408 on a kept connection")
				f.stale = true
				return f
			}
			x.req.Replica = x.client.replica(&x.head)
			x.storeEcho()
			x.req.Timeline.Head = slices.MaxFunc([]time.Time{x.conn.Last.At, x.req.Timeline.Write}, time.Time.Compare)
			x.noteHead(s, x.req.Timeline.Head)
			x.in.Body(x.head.ContentLength(), s)
			return nil
		}
		for name, value := range x.head.All() {
			interim += len(name) + len(value)
		}
	}
	return failed(measure.BadStream, "want an answer, got over %d KiB of interim ones", interimBytes>>10)
}

// noAnswer returns the failure of a request without a byte of an answer. An error of the write explains it better
// than the error of the read.
func (x *exchange) noAnswer(ctx context.Context, err error) *failure {
	wrote := x.out.err
	if x.upload != nil {
		x.uploaded()
		wrote = x.upload.written.err
	}
	if wrote != nil {
		err = wrote
	}
	if f := x.cutShort(ctx, err); f != nil {
		return f
	}
	if refused, ok := errors.AsType[*net.OpError](err); ok && refused.Op == "remote error" {
		return failed(measure.ConnectFailed, "TLS: %v", err) // the server has judged the client's certificate after the handshake
	}
	held := x.held().Round(time.Millisecond)
	f := failed(measure.NoAnswer, "closed after %v, before any byte of an answer: %v", held, err)
	f.stale = x.stale(false)
	return f
}

// readHead reads one head. A buffer that one has made larger stays so: the next from this server will be as long.
func (x *exchange) readHead() error {
	if head := x.in.LooseHead(); head != nil {
		return x.head.Read(bufio.NewReaderSize(bytes.NewReader(head), len(head)))
	}
	err := x.head.Read(x.in.Head())
	if err == nil {
		return nil
	}
	if head := x.in.OneLength(); head != nil {
		return x.head.Read(bufio.NewReaderSize(bytes.NewReader(head), len(head)))
	}
	if _, small := errors.AsType[*fasthttp.ErrSmallBuffer](err); !small || x.in.Room() == headBytes {
		return err
	}
	x.in.MakeRoom(headBytes)
	return x.readHead()
}

// badHead tells apart why the head of an answer could not be read.
func (x *exchange) badHead(ctx context.Context, err error) *failure {
	got := x.in.Front(shownBytes)
	var large *fasthttp.ErrSmallBuffer
	switch {
	case x.conn.Err() == nil && errors.As(err, &large):
		return failed(measure.BadStream, "the head of the answer is over 16 KiB")
	case isHTTP2(got):
		return failed(measure.BadStream, "want HTTP/1.1, the server speaks HTTP/2 only")
	case x.conn.Err() == nil && bytes.HasPrefix(got, []byte("HTTP/")): // all bytes so far were read, and are wrong
		return failed(measure.BadStream, "want the head of an HTTP answer, got %q: %s", x.client.front(got, shownBytes),
			x.client.front([]byte(parserSays(err)), shownBytes))
	case x.conn.Err() == nil:
		return failed(measure.BadStream, "not an HTTP answer: %q", x.client.front(got, shownBytes))
	}
	if f := x.cutShort(ctx, x.conn.Err()); f != nil {
		return f
	}
	if http := []byte("HTTP/1."); !bytes.HasPrefix(got, http[:min(len(got), len(http))]) {
		return failed(measure.BadStream, "not an HTTP answer: %q", x.client.front(got, shownBytes))
	}
	return failed(measure.Truncated, "the answer ended within its head: %v", x.conn.Err())
}

// parserSays returns the reason in an error of fasthttp's parser, which quotes the whole head behind it.
func parserSays(err error) string {
	text := strings.TrimPrefix(err.Error(), "error when reading response headers: ")
	for _, quote := range []string{": buffer size=", ": response \""} {
		text, _, _ = strings.Cut(text, quote)
	}
	return text
}

// isHTTP2 reports whether an answer begins with a frame SETTINGS or GOAWAY, as those of servers do that speak HTTP/2 only (RFC 9113,
// 3.4).
func isHTTP2(b []byte) bool {
	const settings, goAway = 4, 7
	return len(b) >= 9 && b[0] == 0 && b[1] == 0 && (b[3] == settings || b[3] == goAway) && bytes.Equal(b[5:9], []byte{0, 0, 0, 0})
}
