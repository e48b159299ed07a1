//go:build linux

package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"replayd/bench/lab"
	"replayd/test/outside"
)

// serve runs the server; stop ends it and returns its log.
func serve(t *testing.T, args ...string) (address string, stop func() []lab.Stamped) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "log.jsonl")
	signals, done := make(chan os.Signal, 1), make(chan error, 1)
	out, in := io.Pipe()
	go func() {
		err := run(append(args, "--log", log), signals, in)
		in.Close()
		done <- err
	}()
	first, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("want an address, got %v: %v", err, <-done)
	}
	return strings.TrimPrefix(strings.TrimSpace(first), "listening on "), func() []lab.Stamped {
		t.Helper()
		signals <- syscall.SIGTERM
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		all, err := lab.ReadLines[lab.Stamped](log)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
}

// ask sends a request and returns the events of the answer, including its end.
func ask(t *testing.T, client *http.Client, url, id, body string) []string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Request-Id", id)
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("want a whole answer and 200, got %d, %v", resp.StatusCode, err)
	}
	return strings.SplitAfter(strings.TrimSuffix(string(text), "\n\n"), "\n\n")
}

// holds checks an answer and its entry.
func holds(t *testing.T, events []string, tokens int, e lab.Stamped, ttft, itl time.Duration) {
	t.Helper()
	if len(events) != tokens+lab.Tail {
		t.Fatalf("want %d events and %d after them, got %q", tokens, lab.Tail, events)
	}
	for _, event := range events[:tokens] {
		if len(event) != 222 || !strings.Contains(event, `"aaa`) {
			t.Errorf("want 222 bytes with content, got %d: %q", len(event), event)
		}
	}
	tail := strings.Join(events[tokens:], "")
	for _, want := range []string{`"finish_reason":"length"`, fmt.Sprintf(`"completion_tokens":%d,`, tokens), "data: [DONE]"} {
		if !strings.Contains(tail, want) {
			t.Errorf("want %s after the content, got %q", want, tail)
		}
	}
	if len(e.Chunks) != tokens || e.Arrival > e.Read || e.End < e.Chunks[tokens-1] {
		t.Fatalf("want arrival, read, %d chunks and the end in this order, got %+v", tokens, e)
	}
	for i, ns := range e.Chunks {
		if due := e.Read + int64(ttft) + int64(i)*int64(itl); ns < due {
			t.Errorf("chunk %d: went out %v before it was due", i, time.Duration(due-ns))
		}
	}
}

func TestLoop(t *testing.T) {
	const ttft, itl = 5 * time.Millisecond, 2 * time.Millisecond
	address, stop := serve(t, "--ttft", ttft.String(), "--itl", itl.String(), "--tokens", "6")
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	url := "http://" + address
	all := ask(t, client, url+"/v1/chat/completions", "a/0/1", `{"stream":true}`)
	// The same connection, with a body of many segments.
	few := ask(t, client, url+"/v1/completions", "a/0/2", `{"prompt":"`+strings.Repeat("x", 800_000)+`","max_tokens":2,"stream":true}`)
	whole := ask(t, client, url+"/v1/chat/completions", "a/0/3", `{"max_tokens":1}`)
	if len(whole) != 1 || !strings.Contains(whole[0], `"prompt_tokens":10,"completion_tokens":1`) {
		t.Errorf("want one JSON answer with usage, got %q", whole)
	}
	status, body, err := outside.Call(t.Context(), client, http.MethodGet, url+"/v1/models")
	if err != nil || status != http.StatusOK || !strings.Contains(string(body), `"id":"stamp"`) {
		t.Errorf("want a list of models, got %d %s %v", status, body, err)
	}
	if status, _, err := outside.Call(t.Context(), client, http.MethodGet, url+"/metrics"); err != nil || status != http.StatusNotFound {
		t.Errorf("want 404 of what there is not, got %d, %v", status, err)
	}
	entries := stop()
	if len(entries) != 2 || entries[0].ID != "a/0/1" || entries[1].ID != "a/0/2" {
		t.Fatalf("want the two streamed answers in the log, got %+v", entries)
	}
	holds(t, all, 6, entries[0], ttft, itl)
	holds(t, few, 2, entries[1], ttft, itl)
}

// In a stall nothing is stamped. Chunks that were due in it are sent at its end.
func TestStall(t *testing.T) {
	const after, length = 10 * time.Millisecond, 60 * time.Millisecond
	address, stop := serve(t, "--ttft", "1ms", "--itl", "1ms", "--tokens", "40", "--stall-after", after.String(), "--stall-for", length.String())
	ask(t, http.DefaultClient, "http://"+address+"/v1/chat/completions", "a/0/1", `{"stream":true}`)
	e := stop()[0]
	before := 0
	for _, ns := range e.Chunks {
		since := time.Duration(ns - e.Read)
		if since >= after && since < after+length {
			t.Errorf("want nothing from %v to %v, got a chunk at %v", after, after+length, since)
		}
		if since < after {
			before++
		}
	}
	if len(e.Chunks) != 40 || before > 9 {
		t.Errorf("want 40 chunks, at most 9 of them before the stall, got %d and %d", len(e.Chunks), before)
	}
}

func TestReadRequest(t *testing.T) {
	body := `{"max_tokens":7,"stream":true}`
	whole := fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nX-Request-ID: a/0/1\r\ncontent-length: %d\r\n\r\n%s", len(body), body)
	for n := range len(whole) {
		if _, length, err := readRequest([]byte(whole[:n])); length != 0 || err != nil {
			t.Fatalf("%d bytes of %d: want more, got %d, %v", n, len(whole), length, err)
		}
	}
	r, n, err := readRequest([]byte(whole + "GET"))
	if want := (request{method: "POST", path: "/v1/chat/completions", id: "a/0/1", stream: true, tokens: 7}); err != nil || n != len(whole) || r != want {
		t.Errorf("want %+v, got %+v, %d, %v", want, r, n, err)
	}
	for _, bad := range []string{
		"HELLO\r\n\r\n", "GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
		"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", strings.Repeat("x", maxHeader+1),
	} {
		if _, _, err := readRequest([]byte(bad)); err == nil {
			t.Errorf("%.40q: want an error, got none", bad)
		}
	}
}
