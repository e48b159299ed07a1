package replay

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"replayd/internal/openai"
)

// A fake is a server over net.Pipe in the bubble of a test. The first token of an answer comes after ttft and further
// tokens at intervals of itl, to the nanosecond.
type fake struct {
	ttft, itl  time.Duration
	refuse     atomic.Bool                   // dials fail
	refusal    error                         // of dials that fail; nil: the engine's
	slow       func(id string) time.Duration // added to ttft; nil: nothing
	status     func(id string) int           // 0: 200
	asked      func(id string)               // called for each request; nil: not called
	dials      time.Duration                 // time to connect
	models     string                        // body of the model list; "": one model
	prompt     atomic.Int64                  // prompt_tokens of an answer that is not streamed
	forgets    bool                          // keeps no bodies and no arrivals
	closeAfter int                           // answers on one connection before the server closes it; 0: never
	api        openai.API                    // "": completions
	says       func(id string) string        // text of a chunk; nil: " x"
	keyFile    string                        // file of the client's key; "": no key
	keyed      func(key string)              // called with each Authorization header; nil: not called
	uncounted  bool                          // answers carry no usage
	mute       chan struct{}                 // answers wait until it is closed; nil: no wait
	lines      func(id string) string        // header lines of an answer, each with its end; nil: none

	connections openai.ConnectionMode // "": kept
	slots       chan struct{}         // a connection needs one until it ends; nil: no limit

	mu       sync.Mutex
	arrivals map[string]time.Time // by X-Request-Id
	order    []string
	bodies   map[string][]byte
	heads    map[string]http.Header // of requests
	conns    []net.Conn
	flying   int
	most     int // highest number of requests in flight
	open     int // connections
	mostOpen int
	unused   int // connections that ended without a request
	running  sync.WaitGroup
}

// pass lets d of virtual time go by. It creates no timer for 0: with the race detector, Go crashes when goroutines of a
// bubble receive from timers that have fired (golang/go#78156).
func pass(d time.Duration) {
	if d > 0 {
		<-time.After(d)
	}
}

func (f *fake) dial(context.Context, string, string) (net.Conn, error) {
	if f.refuse.Load() && f.refusal != nil {
		return nil, f.refusal
	}
	if f.refuse.Load() {
		return nil, fmt.Errorf("connection refused")
	}
	if f.dials > 0 {
		pass(f.dials)
	}
	near, far := net.Pipe()
	f.mu.Lock()
	f.conns = append(f.conns, far)
	f.open++
	f.mostOpen = max(f.mostOpen, f.open)
	f.mu.Unlock()
	f.running.Go(func() { f.serve(far) })
	return near, nil
}

func (f *fake) serve(c net.Conn) {
	asked := false
	defer func() {
		_ = c.Close()
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.open--; !asked {
			f.unused++
		}
	}()
	if f.slots != nil {
		f.slots <- struct{}{}
		defer func() { <-f.slots }()
	}
	in := bufio.NewReader(c)
	for n := 0; f.closeAfter == 0 || n < f.closeAfter; n++ {
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		asked = true
		id := req.Header.Get("X-Request-Id")
		now := time.Now()
		f.mu.Lock()
		if f.asked != nil {
			f.asked(id)
		}
		if !f.forgets {
			f.arrivals[id] = now
			f.order = append(f.order, id)
		}
		f.flying++
		f.most = max(f.most, f.flying)
		f.mu.Unlock()
		body, _ := io.ReadAll(req.Body)
		f.mu.Lock()
		if !f.forgets {
			f.bodies[id], f.heads[id] = body, req.Header
		}
		f.mu.Unlock()
		ends := sync.OnceFunc(func() { // before its last bytes: the client's next request may come on another connection
			f.mu.Lock()
			defer f.mu.Unlock()
			f.flying--
		})
		ok := f.answer(c, req, id, body, ends)
		ends()
		if !ok {
			return
		}
	}
}

func (f *fake) answer(c net.Conn, req *http.Request, id string, asked []byte, ends func()) bool {
	if f.mute != nil {
		<-f.mute
	}
	if f.keyed != nil && bytes.Contains(asked, []byte(`"stream":true`)) {
		f.keyed(req.Header.Get("Authorization"))
	}
	said := ` x`
	if f.says != nil {
		said = f.says(id)
	}
	if id != "" && id != "replayd/probe" && !bytes.Contains(asked, []byte(`"stream":true`)) {
		pass(f.ttft)
		body := fmt.Sprintf(`{"choices":[{"text":%q,"finish_reason":"stop"}],"usage":{"prompt_tokens":4,"completion_tokens":3}}`, said)
		ends()
		_, err := fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		return err == nil
	}
	if req.Method == http.MethodGet || !bytes.Contains(asked, []byte(`"stream":true`)) {
		body := `{"data":[{"id":"m","owned_by":"vllm"}]}`
		f.mu.Lock()
		if f.models != "" {
			body = f.models
		}
		f.mu.Unlock()
		if req.Method != http.MethodGet {
			body = fmt.Sprintf(`{"choices":[{"text":" x"}],"usage":{"prompt_tokens":%d}}`, f.prompt.Load())
		}
		ends()
		_, err := fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		return err == nil
	}
	if f.status != nil {
		if s := f.status(id); s != 0 {
			ends()
			_, err := fmt.Fprintf(c, "HTTP/1.1 %d x\r\nContent-Length: 0\r\n\r\n", s)
			return err == nil
		}
	}
	lines := ""
	if f.lines != nil {
		lines = f.lines(id)
	}
	if _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\n"+lines+"Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"); err != nil {
		return false
	}
	event := func(data string) bool {
		data = "data: " + data + "\n\n"
		_, err := fmt.Fprintf(c, "%x\r\n%s\r\n", len(data), data)
		return err == nil
	}
	const n = 3
	for i := range n {
		wait := f.itl
		if i == 0 {
			wait = f.ttft
			if f.slow != nil {
				wait += f.slow(id)
			}
		}
		pass(wait)
		if !event(fmt.Sprintf(`{"choices":[{"index":0,"text":%q,"finish_reason":null}]}`, said)) {
			return false
		}
	}
	ends()
	if !event(`{"choices":[{"index":0,"text":"","finish_reason":"length"}]}`) ||
		!f.uncounted && !event(fmt.Sprintf(`{"choices":[],"usage":{"prompt_tokens":4,"completion_tokens":%d}}`, n)) || !event("[DONE]") {
		return false
	}
	_, err := io.WriteString(c, "0\r\n\r\n")
	return err == nil
}

// cutAll closes every connection, like an engine that restarts.
func (f *fake) cutAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.conns {
		_ = c.Close()
	}
}
