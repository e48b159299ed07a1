package openai

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"replayd/internal/measure"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// newClient calls New with defaults for the fields that a test leaves empty, and closes the client at the end of
// the test.
func newClient(t *testing.T, target Target) *Client {
	t.Helper()
	if target.URL == "" {
		target.URL = "http://test:8000"
	}
	if target.API == "" {
		target.API = Chat
	}
	if target.Output == "" {
		target.Output = OutputExact
	}
	target.Name, target.UserAgent = "test", "replayd/test"
	c, err := New(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// over makes c dial pipes and calls serve with the other end of each; n counts from 0. The cleanup of the test
// closes c and waits for serve.
func over(t *testing.T, c *Client, serve func(n int, conn net.Conn)) {
	t.Helper()
	var group sync.WaitGroup
	t.Cleanup(func() {
		c.Close()
		group.Wait()
	})
	n := 0
	c.dial = func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		number := n
		n++
		group.Go(func() { serve(number, far) })
		return near, nil
	}
}

// request reads one whole request.
func request(conn net.Conn) (head *http.Request, body string, err error) {
	head, err = http.ReadRequest(bufio.NewReader(conn))
	if err != nil {
		return nil, "", err
	}
	b, err := io.ReadAll(head.Body)
	return head, string(b), err
}

func send(conn net.Conn, text string) { _, _ = io.WriteString(conn, text) }

const (
	streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"
	done       = "data: [DONE]\n\n"
	bodyEnd    = "0\r\n\r\n"
)

// usualChunk is a typical chunk of an engine.
const usualChunk = `{"id":"chatcmpl-1f3a9c1e2b","object":"chat.completion.chunk","created":1750000000,"model":"Qwen/Qwen3-8B","choices":[{"index":0,"delta":{"content":" hello"},"logprobs":null,"finish_reason":null}]}`

func chunked(text string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(text), text) }

func delta(text string) string {
	return `data: {"choices":[{"index":0,"delta":{"content":"` + text + `"},"finish_reason":null}]}` + "\n\n"
}

func finish(reason string) string {
	return `data: {"choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]}` + "\n\n"
}

// message returns a small streaming request.
func message(t *testing.T, c *Client) []byte {
	t.Helper()
	body := Body{Prompt: []byte("about"), MaxTokens: 3, RequestID: "w/0/0", Stream: true}
	m, err := c.AppendRequest(nil, body)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// do plays one request. It fails the test unless the hook Sent is called exactly once.
func do(t *testing.T, l *Lane, req *measure.Request) {
	t.Helper()
	doContext(t.Context(), t, l, req)
}

func doContext(ctx context.Context, t *testing.T, l *Lane, req *measure.Request) {
	t.Helper()
	sent := 0
	m := message(t, l.client)
	l.Do(ctx, m, req, Hooks{
		Sent: func() { sent++ },
		Again: func() ([]byte, error) {
			if sent != 1 {
				t.Errorf("asked for the message again after sent was called %d times, want 1", sent)
			}
			return m, nil
		},
	})
	if sent != 1 {
		t.Errorf("sent was called %d times, want 1", sent)
	}
	if req.Timeline.End.IsZero() {
		t.Error("no end")
	}
	if (req.Error == "") != (req.Outcome == measure.OK) {
		t.Errorf("outcome %s with error %q", req.Outcome, req.Error)
	}
	if strings.ContainsAny(string(req.Error), "\r\n") || len(req.Error) > errorTextBytes {
		t.Errorf("error text: want one line of at most %d bytes, got %q", errorTextBytes, req.Error)
	}
}

func ms(values ...int) []time.Duration {
	var all []time.Duration
	for _, v := range values {
		all = append(all, time.Duration(v)*time.Millisecond)
	}
	return all
}

// pass advances virtual time by d. Call it only inside a testing/synctest bubble.
func pass(d time.Duration) {
	<-time.After(d)
}
