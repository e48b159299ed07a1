//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"replayd/bench/lab"
)

// answer is the answer of bench/stamp, without its times.
func answer(tokens int) string {
	var b strings.Builder
	for i := range tokens + lab.Tail {
		event := fmt.Sprintf("data: {\"choices\":[{\"delta\":{\"content\":\"%d\"}}]}\n\n", i)
		fmt.Fprintf(&b, "%x\r\n%s\r\n", len(event), event)
	}
	return "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b.String() + "0\r\n\r\n"
}

func TestRun(t *testing.T) {
	ids := make(chan string, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ids <- r.Header.Get("X-Request-Id")
		_, _ = io.Copy(io.Discard, r.Body) // a server closes the connection on a body that nobody reads
		for i := range 5 + lab.Tail {
			fmt.Fprintf(w, "data: %d\n\n", i)
			w.(http.Flusher).Flush()
		}
	}))
	defer server.Close()
	plan := lab.Plan{URL: server.URL, Streams: 3, Requests: 20, Tokens: 5, BodyBytes: 300_000, Out: filepath.Join(t.TempDir(), "out")}
	var out strings.Builder
	if err := run(plan, &out); err != nil {
		t.Fatal(err)
	}
	var spent lab.Spent
	if err := json.Unmarshal([]byte(out.String()), &spent); err != nil || spent.Tokens != 100 || spent.Requests != 20 || spent.Peak == 0 {
		t.Errorf("want 100 tokens of 20 requests, got %s, %v", out.String(), err)
	}
	close(ids)
	asked := map[string]bool{}
	for id := range ids {
		asked[id] = true
	}
	seen, err := lab.ReadLines[lab.Seen](plan.Out)
	if err != nil || len(seen) != 20 || len(asked) != 20 {
		t.Fatalf("want 20 requests on both sides, got %d and %d, %v", len(seen), len(asked), err)
	}
	for _, s := range seen {
		if !asked[s.ID] || len(s.Chunks) != 5 || s.Chunks[0] < s.Start {
			t.Errorf("want 5 chunks after the start of a request that was sent, got %+v", s)
		}
	}
}

// Each token is counted once, wherever reads split an answer.
func TestScan(t *testing.T) {
	const tokens = 3
	whole := answer(tokens)
	for first := range len(whole) {
		for second := first; second < len(whole); second += 7 {
			l := &loop{plan: lab.Plan{Tokens: tokens}}
			c := &conn{}
			for _, part := range []string{whole[:first], whole[first:second], whole[second:]} {
				if err := l.scan(c, []byte(part)); err != nil {
					t.Fatalf("cut at %d and %d: %v", first, second, err)
				}
			}
			if l.tokens != tokens || l.ended != 1 || len(c.rest) != 0 {
				t.Fatalf("cut at %d and %d: want %d tokens and the end, got %d and %d, %q left", first, second, tokens, l.tokens, l.ended, c.rest)
			}
		}
	}
	if err := (&loop{plan: lab.Plan{Tokens: tokens + 1}}).scan(&conn{}, []byte(whole)); err == nil {
		t.Error("want an error of an answer that is too short, got none")
	}
}
