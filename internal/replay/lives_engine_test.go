package replay_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

// An engine answers completions over net.Pipe in a test's bubble, and logs the requests for judge.
type engine struct {
	ttft, itl  time.Duration
	closeAfter int     // answers on one connection before the engine closes it; 0: no limit
	failing    float64 // share of requests that get status 500

	mu      sync.Mutex
	down    bool
	wires   map[*wire]struct{}
	seen    map[string]int // requests by X-Request-Id, without the probes of the target
	flying  int
	most    int // requests in flight at once
	running sync.WaitGroup
}

// A wire is the client's end of a connection. The engine learns at once when the client closes it.
type wire struct {
	net.Conn
	far    net.Conn
	engine *engine
	gone   chan struct{} // closed when the client has closed its end
	busy   bool          // a request is in flight; guarded by the engine's lock
	closed bool          // also guarded by the engine's lock
}

// Close also ends the request in flight.
func (w *wire) Close() error {
	w.engine.mu.Lock()
	defer w.engine.mu.Unlock()
	if !w.closed {
		w.closed = true
		close(w.gone)
		w.engine.settle(w)
	}
	return w.Conn.Close()
}

// settle marks a connection as idle. The engine's lock must be held.
func (e *engine) settle(w *wire) {
	if w.busy {
		w.busy = false
		e.flying--
	}
}

var errRefused = errors.New("connection refused")

func (e *engine) dial(context.Context, string, string) (net.Conn, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.down {
		return nil, errRefused
	}
	near, far := net.Pipe()
	w := &wire{Conn: near, far: far, engine: e, gone: make(chan struct{})}
	e.wires[w] = struct{}{}
	e.running.Go(func() { e.serve(w) })
	return w, nil
}

// cut closes every connection. If down is set, the engine refuses new ones until up is called.
func (e *engine) cut(down bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.down = down
	for w := range e.wires {
		e.settle(w)
		_ = w.far.Close() // ends the goroutine that serves it
	}
}

func (e *engine) up() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.down = false
}

// received returns the number of requests that reached the engine.
func (e *engine) received() (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, times := range e.seen {
		n += times
	}
	return n
}

func (e *engine) serve(w *wire) {
	defer func() {
		_ = w.far.Close()
		e.mu.Lock()
		e.settle(w)
		delete(e.wires, w)
		e.mu.Unlock()
	}()
	in := bufio.NewReader(w.far)
	for n := 0; e.closeAfter == 0 || n < e.closeAfter; n++ {
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		body, err := io.ReadAll(req.Body)
		if err != nil || e.answer(w, req, body) != nil {
			return
		}
	}
}

const probeID = "replayd/probe"

func (e *engine) answer(w *wire, req *http.Request, body []byte) error {
	id := req.Header.Get("X-Request-Id")
	if req.Method == http.MethodGet {
		return e.write(w, page(`{"data":[{"id":"m"}]}`))
	}
	if id == probeID {
		return e.write(w, page(`{"choices":[{"text":" x"}],"usage":{"prompt_tokens":4}}`))
	}
	e.mu.Lock()
	e.seen[id]++
	if !w.closed {
		w.busy = true
		e.flying++
		e.most = max(e.most, e.flying)
	}
	e.mu.Unlock()
	if e.fails(id) {
		return e.end(w, "HTTP/1.1 500 x\r\nContent-Length: 0\r\n\r\n")
	}
	if !bytes.Contains(body, []byte(`"stream":true`)) {
		if err := e.wait(w, e.ttft); err != nil {
			return err
		}
		return e.end(w, page(`{"choices":[{"text":" x","finish_reason":"stop"}],"usage":{"prompt_tokens":4,"completion_tokens":3}}`))
	}
	return e.stream(w)
}

func page(body string) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

func (e *engine) stream(w *wire) error {
	if err := e.write(w, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"); err != nil {
		return err
	}
	pause := e.ttft
	for _, data := range []string{
		`{"choices":[{"index":0,"text":" x","finish_reason":null}]}`,
		`{"choices":[{"index":0,"text":" x","finish_reason":null}]}`,
		`{"choices":[{"index":0,"text":" x","finish_reason":"length"}]}`,
		`{"choices":[],"usage":{"prompt_tokens":4,"completion_tokens":3}}`,
		"[DONE]",
	} {
		if err := e.wait(w, pause); err != nil {
			return err
		}
		pause = e.itl
		event := "data: " + data + "\n\n"
		if err := e.write(w, fmt.Sprintf("%x\r\n%s\r\n", len(event), event)); err != nil {
			return err
		}
	}
	return e.end(w, "0\r\n\r\n")
}

// wait lets d of virtual time pass. It returns an error as soon as the client closes the connection.
func (e *engine) wait(w *wire, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	select {
	case <-time.After(d):
		return nil
	case <-w.gone:
		return net.ErrClosed
	}
}

func (e *engine) write(w *wire, text string) error {
	_, err := io.WriteString(w.far, text)
	return err
}

// end writes the last bytes of an answer. It marks the connection as idle first, because the client may send the next
// request as soon as it has read them.
func (e *engine) end(w *wire, text string) error {
	e.mu.Lock()
	e.settle(w)
	e.mu.Unlock()
	return e.write(w, text)
}

// fails reports whether a request gets an error. The result depends on the id alone, so it is the same in each run of a
// seed.
func (e *engine) fails(id string) bool {
	h := fnv.New32a()
	_, _ = io.WriteString(h, id) // it cannot fail
	return float64(h.Sum32())/(1<<32) < e.failing
}

// judge compares the engine's log with the reports of the observers.
func (e *engine) judge(t *testing.T, lanes int, reported map[string]report) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.most > lanes {
		t.Errorf("%d requests in flight at once, want at most %d", e.most, lanes)
	}
	for id, n := range e.seen {
		r, ok := reported[id]
		if !ok {
			t.Errorf("request %s reached the engine and was not reported", id)
		} else if n > r.finished+r.retried {
			t.Errorf("request %s reached the engine %d times, reported %d times with %d retries", id, n, r.finished, r.retried)
		}
	}
	for id, r := range reported {
		if r.ok > e.seen[id] {
			t.Errorf("request %s was reported ok %d times and reached the engine %d times", id, r.ok, e.seen[id])
		}
	}
}
