//go:build linux

package main

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

const (
	maxTokens  = 1 << 20
	maxChunk   = 16 << 10
	leastChunk = len(before) + len(after) + 1
	maxHeader  = 64 << 10
	maxBody    = 64 << 20
)

// An event with content is before, letters, and after.
const (
	before = `data: {"id":"chatcmpl-stamp","object":"chat.completion.chunk","created":1700000000,"model":"stamp","choices":[{"index":0,"delta":{"content":"`
	after  = "\"},\"finish_reason\":null}]}\n\n"

	// The same for /v1/completions.
	beforeText = `data: {"id":"cmpl-stamp","object":"text_completion","created":1700000000,"model":"stamp","choices":[{"index":0,"text":"`
	afterText  = "\",\"finish_reason\":null}]}\n\n"

	head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n"
)

// wording holds the bytes of answers, which are the same for equal requests.
type wording struct {
	chunk, first [2][]byte // by kind
	tails        map[tailKey][]byte
}

type tailKey struct{ kind, tokens int }

const (
	chat = iota
	completions
)

func newWording(chunkBytes int) *wording {
	w := &wording{tails: map[tailKey][]byte{}}
	for kind, ends := range [2][2]string{{before, after}, {beforeText, afterText}} {
		letters := strings.Repeat("a", chunkBytes-len(ends[0])-len(ends[1]))
		w.chunk[kind] = framed(ends[0] + letters + ends[1])
		w.first[kind] = append([]byte(head), w.chunk[kind]...)
	}
	return w
}

// framed returns a chunk of HTTP/1.1's chunked coding.
func framed(payload string) []byte {
	return fmt.Appendf(nil, "%x\r\n%s\r\n", len(payload), payload)
}

// tail returns the events after the content, in one write: the finish reason, the usage and the end.
func (w *wording) tail(kind, tokens int) []byte {
	key := tailKey{kind, tokens}
	b, ok := w.tails[key]
	if !ok {
		object, choice := "chat.completion.chunk", `"delta":{}`
		if kind == completions {
			object, choice = "text_completion", `"text":""`
		}
		for _, event := range []string{
			fmt.Sprintf(`{"id":"stamp","object":%q,"model":"stamp","choices":[{"index":0,%s,"finish_reason":"length"}]}`, object, choice),
			fmt.Sprintf(`{"id":"stamp","object":%q,"model":"stamp","choices":[],"usage":%s}`, object, usage(tokens)),
			"[DONE]",
		} {
			b = append(b, framed("data: "+event+"\n\n")...)
		}
		b = append(b, "0\r\n\r\n"...)
		if len(w.tails) < maxTails {
			w.tails[key] = b
		}
	}
	return b
}

// maxTails caps the tails that requests of different lengths leave behind.
const maxTails = 4096

func usage(tokens int) string {
	return fmt.Sprintf(`{"prompt_tokens":10,"completion_tokens":%d,"total_tokens":%d}`, tokens, 10+tokens)
}

// plain returns an unstreamed answer.
func plain(status, body string) []byte {
	return fmt.Appendf(nil, "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", status, len(body), body)
}

// whole answers requests that are not streamed: the list of models, a request for one JSON answer, and unknown paths.
func (r request) whole() []byte {
	switch {
	case r.method == "GET" && r.path == "/v1/models":
		return plain("200 OK", `{"object":"list","data":[{"id":"stamp","object":"model","owned_by":"bench"}]}`)
	case r.asks() && r.kind == chat:
		return plain("200 OK", `{"id":"stamp","object":"chat.completion","model":"stamp","choices":[{"index":0,"message":{"role":"assistant","content":"a"},"finish_reason":"length"}],"usage":`+usage(1)+`}`)
	case r.asks():
		return plain("200 OK", `{"id":"stamp","object":"text_completion","model":"stamp","choices":[{"index":0,"text":"a","finish_reason":"length"}],"usage":`+usage(1)+`}`)
	}
	return plain("404 Not Found", `{"error":{"message":"want /v1/models, /v1/chat/completions or /v1/completions","code":404}}`)
}

// A request is the part of a request that the server needs.
type request struct {
	method, path, id string
	kind             int
	stream           bool
	tokens           int // max_tokens; 0: none was given
}

// asks reports whether the request asks for an answer.
func (r request) asks() bool {
	return r.method == "POST" && (r.path == "/v1/chat/completions" || r.path == "/v1/completions")
}

// readRequest parses the first request of b; n is its length, or 0 if it is incomplete. It searches the body without
// parsing it. A prompt that contains a key of the API would mislead it, but the benchmarks' prompts are words.
func readRequest(b []byte) (r request, n int, err error) {
	end := bytes.Index(b, []byte("\r\n\r\n"))
	if end < 0 {
		if len(b) > maxHeader {
			return r, 0, fmt.Errorf("want a header of at most %d bytes, got more", maxHeader)
		}
		return r, 0, nil
	}
	first, fields, _ := bytes.Cut(b[:end], []byte("\r\n"))
	words := bytes.Fields(first)
	if len(words) != 3 || !bytes.HasPrefix(words[2], []byte("HTTP/1.")) {
		return r, 0, fmt.Errorf("want a request line of HTTP/1.1, got %q", first)
	}
	length := 0
	for len(fields) > 0 {
		var line []byte
		line, fields, _ = bytes.Cut(fields, []byte("\r\n"))
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch value = bytes.TrimSpace(value); {
		case bytes.EqualFold(name, []byte("Content-Length")):
			if length, err = strconv.Atoi(string(value)); err != nil || length < 0 || length > maxBody {
				return r, 0, fmt.Errorf("Content-Length: want 0 to %d, got %q", maxBody, value)
			}
		case bytes.EqualFold(name, []byte("X-Request-Id")):
			r.id = string(value)
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			return r, 0, fmt.Errorf("want a Content-Length, got Transfer-Encoding: %q", value)
		}
	}
	n = end + len("\r\n\r\n") + length
	if len(b) < n {
		return r, 0, nil
	}
	r.method, r.path = string(words[0]), string(words[1])
	body := b[n-length : n]
	r.stream = r.asks() && find(body, "stream") == "true"
	if r.path == "/v1/completions" {
		r.kind = completions
	}
	for _, key := range []string{"max_tokens", "max_completion_tokens"} {
		if r.tokens, err = strconv.Atoi(find(body, key)); err == nil && r.tokens > 0 {
			return r, n, nil
		}
	}
	r.tokens = 0
	return r, n, nil
}

// find returns the number or the word after a key. It takes the
// last occurrence: the API's own keys mostly follow the prompt.
func find(body []byte, key string) string {
	quoted := `"` + key + `":`
	at := bytes.LastIndex(body, []byte(quoted))
	if at < 0 {
		return ""
	}
	rest := bytes.TrimLeft(body[at+len(quoted):], " ")
	if end := bytes.IndexAny(rest, ",} \r\n"); end >= 0 {
		rest = rest[:end]
	}
	return string(rest)
}
