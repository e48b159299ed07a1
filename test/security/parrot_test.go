package security_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// A parrot is a hostile server. It repeats the secrets that it was sent in each
// place of an answer that replayd could show. The first word of a path names the
// place. Under /own/ it answers correctly, except for what the second word names.
type parrot struct {
	*httptest.Server
	elsewhere *httptest.Server // the target of redirects: no request may come

	mu    sync.Mutex
	heard map[string]int // requests by path
	lured int            // requests to elsewhere
}

func newParrot(t *testing.T) *parrot {
	t.Helper()
	p := &parrot{heard: map[string]int{}}
	p.elsewhere = httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.lured++
	}))
	p.Server = httptest.NewServer(p)
	t.Cleanup(func() {
		p.Close()
		p.elsewhere.Close()
	})
	return p
}

// secrets returns the secrets in a request.
func secrets(r *http.Request, body []byte) string {
	var all []string
	var sent struct {
		Key string `json:"api_key"`
	}
	if json.Unmarshal(body, &sent) == nil && sent.Key != "" {
		all = append(all, sent.Key)
	}
	for _, name := range []string{"api-key", "sig"} {
		all = append(all, r.URL.Query()[name]...)
	}
	for _, name := range []string{"Authorization", "Proxy-Authorization", "X-Api-Key", "X-Secret", "X-File", "X-Mark-Token"} {
		all = append(all, r.Header.Values(name)...)
	}
	if user, password, ok := r.BasicAuth(); ok {
		all = append(all, user+":"+password)
	}
	return strings.Join(all, " ")
}

const (
	goodStream = `data: {"choices":[{"index":0,"delta":{"content":"` + answerText + `"}}]}` + "\n\n" +
		`data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":20,"completion_tokens":1}}` + "\n\n" + "data: [DONE]\n\n"
	answerText = "kanarie-answer"
)

// A repeat answers with the secrets it was told.
type repeat func(w http.ResponseWriter, told string, r *http.Request)

func status(code int, kind string, body func(told string) string) repeat {
	return func(w http.ResponseWriter, told string, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body(told))
	}
}

func raw(text func(told string) string) repeat {
	return func(w http.ResponseWriter, told string, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		_, _ = io.WriteString(conn, text(told))
		_ = conn.Close()
	}
}

func quoted(told string) string { text, _ := json.Marshal(told); return string(text) }

func escaped(told string) string { return strings.ReplaceAll(quoted(told), "/", `\/`) }

// padded puts the secrets where a cut at n bytes divides them.
func padded(n int, told string) string { return strings.Repeat(".", max(0, n-len(told)/2)) + told }

var repeats = map[string]repeat{
	"401":        status(401, "application/json", func(told string) string { return `{"error":{"message":` + quoted(told) + `}}` }),
	"400":        status(400, "application/json", func(told string) string { return `{"detail":[{"input":` + escaped(told) + `}]}` }),
	"422":        status(422, "application/json", func(told string) string { return `{"what":` + escaped(told) + `}` }),
	"500-html":   status(500, "text/html", func(told string) string { return "<p>" + html.EscapeString(told) }),
	"500-long":   status(500, "text/plain", func(told string) string { return padded(4096, told) }),
	"503-cut":    status(503, "text/plain", func(told string) string { return padded(512, told) }),
	"503-packed": status(503, "text/plain", func(told string) string { return strings.Repeat(told, 4096/max(1, len(told))+2) }),
	"429":        status(429, "text/plain", strconv.Quote),
	"line":       raw(func(told string) string { return "HTTP/1.1 401 Bad " + told + "\r\nContent-Length: 0\r\n\r\n" }),
	"kind": raw(func(told string) string {
		return "HTTP/1.1 200 OK\r\nContent-Type: " + told + "\r\nContent-Length: 0\r\n\r\n"
	}),
	"encoding": raw(func(told string) string {
		return "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: " + told + "\r\nContent-Length: 2\r\n\r\n\n\n"
	}),
	"no-http":     raw(func(told string) string { return told + "\r\n\r\n" }),
	"no-http-cut": raw(func(told string) string { return padded(64, told) + "\r\n\r\n" }),
	"head":        raw(func(told string) string { return "HTTP/1.1 200 OK\r\nbroken " + told + "\r\n\r\n" }),
	"garbage":     status(200, "text/event-stream", func(told string) string { return "data: " + told + "\n\n" }),
	"garbage-cut": status(200, "text/event-stream", func(told string) string { return "data: " + padded(64, told) + "\n\n" }),
	"torn":        status(200, "text/event-stream", func(told string) string { return `data: {"a":` + quoted(told) + "\n\n" }),
	"event":       status(200, "text/event-stream", func(told string) string { return "event: error\ndata: " + padded(512, told) + "\n\n" }),
	"comment":     status(200, "text/event-stream", func(told string) string { return ": " + padded(128, told) + "\nevent: error\n\n" }),
	"error-in-it": status(200, "text/event-stream", func(told string) string { return `data: {"error":` + quoted(told) + "}\n\n" }),
	"finish": status(200, "text/event-stream", func(told string) string {
		return strings.ReplaceAll(goodStream, `"stop"`, quoted(told))
	}),
	"page-line":  status(200, "text/plain", func(told string) string { return "vllm:num_requests_running{a=\"" + told + "\n" }),
	"page-label": status(200, "text/plain", func(told string) string { return padded(80, told) + " 1 2 3\n" }),
	"301":        redirect(301), "302": redirect(302), "307": redirect(307), "308": redirect(308),

	"json": status(200, "application/json", func(told string) string { return `{"a":` + quoted(told) + "}" }),
}

func redirect(code int) repeat {
	return func(w http.ResponseWriter, told string, r *http.Request) {
		w.Header().Set("Location", r.Header.Get("X-Elsewhere")+"/"+told+"?key="+told)
		w.WriteHeader(code)
	}
}

// ServeHTTP implements http.Handler. A path is /FAULT/own/PLACE…: if PLACE is all, every request gets the fault,
// otherwise only requests for text do.
func (p *parrot) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	fault, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	p.mu.Lock()
	p.heard[r.URL.Path]++
	if id := r.Header.Get("X-Request-Id"); id != "" && id != "replayd/probe" {
		p.heard["a row at "+r.URL.Path]++
	}
	p.mu.Unlock()
	r.Header.Set("X-Elsewhere", p.elsewhere.URL)
	everywhere := strings.HasPrefix(rest, "all/")
	switch {
	case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/v1/models") && !everywhere:
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"data":[{"id":"model"}]}`)
	case fault != "oauth" && r.Method == http.MethodGet && (repeats[fault] == nil || fault == "finish"):
		fmt.Fprintln(w, `DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-1"} 40`)
	case fault != "oauth" && repeats[fault] == nil && !bytes.Contains(body, []byte(`"stream":true`)): // the probe of the chat template's own tokens
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"choices":[{"message":{"content":"a"},"finish_reason":"length"}],"usage":{"prompt_tokens":5,"completion_tokens":1}}`)
	case fault != "oauth" && repeats[fault] == nil:
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, goodStream)
	case fault == "oauth": // an OAuth server
		form, _ := url.ParseQuery(string(body))
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, form.Get("client_secret"), " ", secrets(r, nil))
	default:
		repeats[fault](w, secrets(r, body), r)
	}
}

// faults returns the names of all faults, sorted.
func faults() []string {
	var all []string
	for name := range repeats {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}
