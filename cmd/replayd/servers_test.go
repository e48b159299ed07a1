package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"replayd/test/outside"
)

// A stranger is a server that does not behave as replayd expects. It counts connections, and the requests of a trace
// that it read completely, but not requests for models or probes.
type stranger struct {
	listener net.Listener
	behavior
	connections atomic.Int64
	hits        atomic.Int64
	mu          sync.Mutex
	heard       string // requests of a trace: sorted heads, each with its body
	closed      chan struct{}
	serving     sync.WaitGroup
}

type strangersKey struct{}

const goodEvents = `data: {"choices":[{"index":0,"delta":{"content":"word"}}]}` + "\n\n" +
	`data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":20,"completion_tokens":1}}` + "\n\n" +
	"data: [DONE]\n\n"

// saying answers after 50 ms with so many tokens, and ends for a reason. Beside that time replayd is not late.
func saying(finish string, tokens int) func(net.Conn, <-chan struct{}) {
	events := strings.NewReplacer(`"stop"`, `"`+finish+`"`, `"completion_tokens":1`, fmt.Sprintf(`"completion_tokens":%d`, tokens)).Replace(goodEvents)
	return func(conn net.Conn, closed <-chan struct{}) {
		select {
		case <-time.After(50 * time.Millisecond):
		case <-closed:
		}
		say200("text/event-stream", "", events)(conn, closed)
	}
}

// A behavior is what a stranger does after it has read a request and before it closes the connection.
type behavior struct {
	answer func(conn net.Conn, closed <-chan struct{}) // nil: closes at once, before it reads anything
	lists  bool                                        // lists one model, as a good server does
	minds  string                                      // key of a body that it refuses
}

var behaviors = map[string]behavior{
	"html":        {answer: say200("text/html", "", "<html><body>It works!</body></html>")},
	"closes":      {},
	"silent":      {answer: func(_ net.Conn, closed <-chan struct{}) { <-closed }},
	"headers-10k": {answer: say200("text/event-stream", "X-Large: "+strings.Repeat("x", 10<<10)+"\r\n", goodEvents), lists: true},
	"redirects": {answer: func(conn net.Conn, _ <-chan struct{}) {
		_, _ = io.WriteString(conn, "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/elsewhere\r\nContent-Length: 0\r\n\r\n")
	}},
	"byte-a-second": {answer: func(conn net.Conn, closed <-chan struct{}) {
		drip(conn, closed, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"+goodEvents)
	}},
	"stalls": {lists: true, answer: func(conn net.Conn, closed <-chan struct{}) {
		first, rest, _ := strings.Cut(goodEvents, "\n\n")
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"+first+"\n\n")
		drip(conn, closed, rest)
	}},
	"says-98":     {answer: saying("stop", 98), lists: true},
	"says-50":     {answer: saying("length", 50), lists: true},
	"minds-eos":   {answer: say200("text/event-stream", "", goodEvents), lists: true, minds: "ignore_eos"},
	"minds-usage": {answer: say200("text/event-stream", "", goodEvents), lists: true, minds: "stream_options"},
	"good":        {answer: say200("text/event-stream", "", goodEvents), lists: true},
	"two-models":  {answer: say200("application/json", "", `{"data":[{"id":"llama"},{"id":"qwen"}]}`)},
}

func say200(kind, headers, body string) func(net.Conn, <-chan struct{}) {
	return func(conn net.Conn, _ <-chan struct{}) {
		_, _ = fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\n%sContent-Length: %d\r\n\r\n%s", kind, headers, len(body), body)
	}
}

// drip writes one byte per second until the client has left.
func drip(conn net.Conn, closed <-chan struct{}, text string) {
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for i := range len(text) {
		if _, err := io.WriteString(conn, text[i:i+1]); err != nil {
			return
		}
		select {
		case <-second.C:
		case <-closed:
			return
		}
	}
}

func (s *stranger) serve() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.connections.Add(1)
		s.serving.Go(func() {
			defer conn.Close()
			if s.answer == nil {
				return
			}
			_ = conn.SetDeadline(time.Now().Add(outside.Patience)) // a script must end
			req, err := http.ReadRequest(bufio.NewReader(conn))
			if err != nil {
				return
			}
			body, err := io.ReadAll(req.Body)
			if err != nil {
				return
			}
			if id := req.Header.Get("X-Request-Id"); id != "" && id != "replayd/probe" {
				s.hits.Add(1)
				s.keep(req.Header, body)
			}
			if s.lists && req.Method == http.MethodGet {
				say200("application/json", "", `{"data":[{"id":"model"}]}`)(conn, s.closed)
				return
			}
			if s.minds != "" && bytes.Contains(body, []byte(`"`+s.minds+`":`)) {
				text := fmt.Sprintf(`{"detail":"Unexpected fields in the request: {'%s'}"}`, s.minds)
				_, _ = fmt.Fprintf(conn, "HTTP/1.1 422 Unprocessable Entity\r\nContent-Length: %d\r\n\r\n%s",
					len(text), text)
				return
			}
			s.answer(conn, s.closed)
		})
	}
}

func (s *stranger) keep(head http.Header, body []byte) {
	var text strings.Builder
	_ = head.Write(&text) // a Builder never fails
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.heard) < 1<<20 {
		s.heard += strings.ReplaceAll(text.String(), "\r\n", "\n") + string(body) + "\n\n"
	}
}

// heard VAR writes to the script's stdout the requests of a trace that the server behind VAR received.
func heard(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: heard VAR")
	}
	s := theServer(ts, args[0])
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := io.WriteString(ts.Stdout(), s.heard)
	ts.Check(err)
}

// server VAR BEHAVIOR starts a stranger and puts its URL into VAR.
func server(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: server VAR BEHAVIOR")
	}
	behave, known := behaviors[args[1]]
	if !known {
		ts.Fatalf("server: no such behavior: %s", args[1])
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	s := &stranger{listener: l, behavior: behave, closed: make(chan struct{})}
	s.serving.Go(s.serve)
	ts.Defer(func() {
		close(s.closed)
		_ = l.Close()
		s.serving.Wait()
	})
	ts.Setenv(args[0], "http://"+l.Addr().String())
	ts.Value(strangersKey{}).(map[string]*stranger)[args[0]] = s
}

// hits N VAR expects that the server behind VAR has read N requests of a trace.
func hits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: hits N VAR")
	}
	s, got := theServer(ts, args[1]), ""
	for end := time.Now().Add(outside.Patience); ; <-time.After(10 * time.Millisecond) { // a client may have left before its request was read
		got = strconv.FormatInt(s.hits.Load(), 10)
		if got == args[0] {
			return
		}
		if len(got) > len(args[0]) || time.Now().After(end) {
			break
		}
	}
	ts.Fatalf("requests that reached %s: want %s, got %s", args[1], args[0], got)
}

// untouched VAR expects that no client has connected to the server behind VAR.
func untouched(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: untouched VAR")
	}
	if got := theServer(ts, args[0]).connections.Load(); got != 0 {
		ts.Fatalf("connections to %s: want none, got %d", args[0], got)
	}
}

func theServer(ts *testscript.TestScript, name string) *stranger {
	s := ts.Value(strangersKey{}).(map[string]*stranger)[name]
	if s == nil {
		ts.Fatalf("no server %s", name)
	}
	return s
}
