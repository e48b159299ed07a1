//go:build between

package between_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// An engine is a server of chat completions that stamps each request.
type engine struct {
	*httptest.Server
	answer  answer
	waiting atomic.Int64 // requests, as its metrics page says

	mu     sync.Mutex
	calls  []*call
	unused map[net.Conn]bool // open or closed connections without a request
}

// An answer writes the answer to a request.
type answer func(w http.ResponseWriter, r *http.Request, c *call)

// A call is a request with the wall clock's instants, Unix ns. Each is read before the bytes are written.
type call struct {
	id                string
	arrived           int64
	first, last, done atomic.Int64 // of the first and the last token, and of the end
}

// newEngine starts an engine.
func newEngine(t *testing.T, a answer) *engine {
	t.Helper()
	e := &engine{answer: a, unused: map[net.Conn]bool{}}
	e.Server = httptest.NewUnstartedServer(e)
	e.Config.ConnState = func(c net.Conn, state http.ConnState) {
		e.mu.Lock()
		defer e.mu.Unlock()
		switch state {
		case http.StateNew:
			e.unused[c] = true
		case http.StateActive:
			delete(e.unused, c)
		}
	}
	e.Start()
	t.Cleanup(func() {
		e.CloseClientConnections() // a request that is still held ends with its connection
		e.Close()
	})
	return e
}

func (e *engine) address() string { return strings.TrimPrefix(e.URL, "http://") }

// ServeHTTP implements http.Handler.
func (e *engine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodPost:
		c := &call{id: r.Header.Get("X-Request-Id"), arrived: time.Now().UnixNano()}
		e.mu.Lock()
		e.calls = append(e.calls, c)
		e.mu.Unlock()
		_, _ = io.Copy(io.Discard, r.Body) // net/http notices that a client leaves only after that
		e.answer(w, r, c)
	case r.URL.Path == "/v1/models":
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{"object": "list", "data": [{"id": "m", "object": "model"}]}`)
	case r.URL.Path == "/metrics":
		// As vLLM 0.11 writes them.
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		for name, value := range map[string]int64{"running": 1, "waiting": e.waiting.Load()} {
			const family = "# TYPE vllm:num_requests_%s gauge\nvllm:num_requests_%[1]s{engine=\"0\",model_name=\"m\"} %d.0\n"
			_, _ = fmt.Fprintf(w, family, name, value)
		}
	default:
		http.NotFound(w, r)
	}
}

// seen returns the requests of a workload so far, by id.
func (e *engine) seen(workload string) map[string][]*call {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := map[string][]*call{}
	for _, c := range e.calls {
		if strings.HasPrefix(c.id, workload+"/") {
			all[c.id] = append(all[c.id], c)
		}
	}
	return all
}

// unusedConnections returns how many connections carried no request, of those since the last time.
func (e *engine) unusedConnections() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := len(e.unused)
	clear(e.unused)
	return n
}

// stream answers with tokens, each in a chunk of its own: the first one after a time, each further one after a gap.
func stream(first, gap time.Duration, tokens int) answer {
	return func(w http.ResponseWriter, r *http.Request, c *call) {
		w.Header().Set("Content-Type", "text/event-stream")
		pause := first
		for i := range tokens {
			select {
			case <-time.After(pause):
			case <-r.Context().Done():
				return
			}
			pause = gap
			now := time.Now().UnixNano()
			if i == 0 {
				c.first.Store(now)
			}
			c.last.Store(now)
			_, _ = fmt.Fprint(w, content(i))
			_ = http.NewResponseController(w).Flush()
		}
		c.done.Store(time.Now().UnixNano())
		_, _ = fmt.Fprint(w, ending(tokens))
	}
}

// content is the event of a token.
func content(i int) string {
	return fmt.Sprintf("data: {\"choices\": [{\"index\": 0, \"delta\": {\"content\": \" x%d\"}}]}\n\n", i)
}

// ending is the end of a stream.
func ending(tokens int) string {
	return fmt.Sprintf("data: {\"choices\": [{\"index\": 0, \"delta\": {}, \"finish_reason\": \"length\"}], "+
		"\"usage\": {\"prompt_tokens\": 20, \"completion_tokens\": %d}}\n\ndata: [DONE]\n\n", tokens)
}

// An event is what a client reads of an event.
type event struct {
	Choices []struct {
		Delta  struct{ Content string }
		Finish string `json:"finish_reason"`
	}
	Usage struct {
		Output int `json:"completion_tokens"`
	}
}

// parse reads a line of a stream.
func parse(line string) (e event, ok bool) {
	text, ok := strings.CutPrefix(line, "data: ")
	return e, ok && json.Unmarshal([]byte(text), &e) == nil
}
