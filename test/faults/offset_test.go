//go:build faults

package faults_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"replayd/internal/measure"

	"replayd/test/outside"
)

// A connection that is lost after any number of bytes of an answer gives the right outcome: connect without any byte,
// truncated before the proper end, and ok once the finish reason is complete.
func TestOffsets(t *testing.T) {
	event := func(delta, finish string) string {
		return fmt.Sprintf(`data: {"id":"1","object":"chat.completion.chunk","choices":[{"index":0,"delta":%s,"finish_reason":%s}]}`+"\n\n", delta, finish)
	}
	events := event(`{"role":"assistant","content":""}`, "null") + event(`{"content":"Grüße"}`, "null") + event(`{"content":", 世界🙂"}`, "null") +
		event("{}", `"stop"`) + `data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4}}` + "\n\ndata: [DONE]\n\n"
	object := `{"id":"1","choices":[{"index":0,"message":{"role":"assistant","content":"Grüße, 世界🙂"},"finish_reason":"stop"}],` +
		`"usage":{"prompt_tokens":9,"completion_tokens":4}}`
	const stream, whole = "Content-Type: text/event-stream\r\n", "Content-Type: application/json\r\n"
	finished := `"finish_reason":"stop"}]}`
	// enough is the text after which a lost answer is ok; an answer that ends earlier is not.
	for _, c := range []struct{ name, answer, enough, target string }{
		{"stream, chunked", "HTTP/1.1 200 OK\r\n" + stream + "Transfer-Encoding: chunked\r\n\r\n" + inChunks(events, 37) + "0\r\n\r\n", "", ""},
		{"stream, by close", "HTTP/1.1 200 OK\r\n" + stream + "Connection: close\r\n\r\n" + events, finished, ""},
		{"stream, by length", fmt.Sprintf("HTTP/1.1 200 OK\r\n%sContent-Length: %d\r\n\r\n%s", stream, len(events), events), finished, ""},
		{"stream, CRLF", "HTTP/1.1 200 OK\r\n" + stream + "Connection: close\r\n\r\n" + strings.ReplaceAll(events, "\n", "\r\n"), finished, ""},
		{"whole, by length", fmt.Sprintf("HTTP/1.1 200 OK\r\n%sContent-Length: %d\r\n\r\n%s", whole, len(object), object), object, "stream: false, "},
		{"whole, by close", "HTTP/1.1 200 OK\r\n" + whole + "Connection: close\r\n\r\n" + object, object, "stream: false, "},
		{"whole, chunked", "HTTP/1.1 200 OK\r\n" + whole + "Transfer-Encoding: chunked\r\n\r\n" + inChunks(object, 37) + "0\r\n\r\n", "0\r\n\r\n", "stream: false, "},
	} {
		t.Run(c.name, func(t *testing.T) {
			// In the chunked stream the bytes of the finish reason have framing between them.
			enough := strings.Index(c.answer, c.enough) + len(c.enough)
			if c.enough == "" {
				enough = framedEnd(t, c.answer, events[:strings.Index(events, finished)+len(finished)], 37)
			}
			lostAt(t, c.answer, enough, c.target)
		})
	}
}

// lostAt plays a trace whose row n gets n bytes of an answer.
func lostAt(t *testing.T, answer string, enough int, target string) {
	dir := t.TempDir()
	p := newProxy(t, "", 1, func(id string) fault {
		_, _, row := outside.Place(t, id)
		return fault{name: fmt.Sprint(row), says: answer, stop: at(row)}
	})
	listening := p.listen(t)
	var rows []outside.Row
	for range len(answer) + 1 {
		rows = append(rows, outside.Row{Input: 20, Output: 4})
	}
	trace, records, daemon := filepath.Join(dir, "trace.jsonl"), filepath.Join(dir, "records.jsonl"), outside.Address(t)
	outside.Put(t, trace, outside.Trace(rows))
	// Each answer is lost: the closed loop slows down to a request a second of each lane.
	config := outside.Write(t, dir, "replayd.yaml", fmt.Sprintf(`targets: [{name: sim, url: "http://%s", model: sim, %smetrics: {interval: 0s}}]
records: {path: %q}
workloads: [{name: w, trace: {path: %q}, arrival: concurrency, lanes: 128, repeat: {mode: once}, prompt: {calibrate: false}}]
`, listening, target, records, trace))
	process := outside.Start(t, filepath.Join(dir, "serve.out"), binary, "serve", "--config", config, "--web.listen-address", daemon)
	last := outside.See(t, "http://"+daemon, fmt.Sprint(len(rows), " requests that ended"), func(now outside.Page) bool {
		finished, dropped := now.Ended("w")
		return int(finished+dropped) == len(rows)
	})
	process.Term(t)

	all, _ := outside.Records(t, records, false)
	counts, retried := map[measure.Outcome]int{}, 0
	seen := make([]bool, len(rows))
	for _, r := range all {
		_, _, row := outside.Place(t, r.ID)
		if seen[row] {
			t.Errorf("%s: two records", r.ID)
		}
		seen[row] = true
		want := measure.Truncated
		switch {
		case row == 0:
			want = measure.NoAnswer
		case row >= enough:
			want = measure.OK
		}
		if r.Outcome != string(want) {
			t.Errorf("after %d of %d bytes, …%q: want %s, got %s (%s)", row, len(answer), answer[max(0, row-40):row], want, r.Outcome, r.Error)
		}
		counts[measure.Outcome(r.Outcome)]++
		if r.Retried {
			retried++
		}
	}
	t.Logf("%d bytes, enough from %d on: %v; %d were sent again, because the connection was a kept one", len(answer), enough, counts, retried)
	for o, n := range counts {
		if got := last.Sum("replayd_requests_total", string(o)); int(got) != n {
			t.Errorf("%s: %d records, counted %v", o, n, got)
		}
	}
	for _, missing := range last.Balance() {
		t.Error(missing)
	}
	for row, ok := range seen {
		if !ok {
			t.Errorf("after %d bytes: want a record, there is none; dropped %v", row, last.Sum("replayd_requests_dropped_total"))
		}
	}
}

// inChunks frames a text in chunks of size bytes, wherever that cuts it.
func inChunks(text string, size int) string {
	var b strings.Builder
	for _, piece := range cut([]byte(text), func() int { return size }) {
		fmt.Fprintf(&b, "%x\r\n%s\r\n", len(piece), piece)
	}
	return b.String()
}

// framedEnd returns the end of a text in an answer whose body begins with the text, framed in chunks of size bytes.
func framedEnd(t *testing.T, answer, text string, size int) int {
	t.Helper()
	at := strings.Index(answer, "\r\n\r\n") + 4
	for left := len(text); ; {
		head := fmt.Sprintf("%x\r\n", size)
		if !strings.HasPrefix(answer[at:], head) {
			t.Fatalf("want a chunk of %d bytes at %d, got %q", size, at, answer[at:at+8])
		}
		if left <= size {
			return at + len(head) + left
		}
		at, left = at+len(head)+size+2, left-size
	}
}
