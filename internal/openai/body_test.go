package openai

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/common/config"

	"replayd/internal/secret"
)

// The whole message for each API, form, output mode and engine.
func TestRequestGolden(t *testing.T) {
	text := Body{Prompt: []byte(" about above"), MaxTokens: 7, RequestID: "w/0/12", Stream: true}
	var out bytes.Buffer
	write := func(title string, target Target, owner string, b Body) {
		c := newClient(t, target)
		if owner != "" {
			if _, err := c.Choose([]Model{{ID: "m", OwnedBy: secret.Text(owner)}}); err != nil {
				t.Fatal(err)
			}
		}
		m, err := c.AppendRequest([]byte("# "+title+"\n"), b)
		if err != nil {
			t.Errorf("%s: %v", title, err)
			return
		}
		fmt.Fprintf(&out, "%s\n\n", strings.ReplaceAll(string(m), "\r\n", "\n"))
		checkMessage(t, m[len(title)+3:])
	}
	for _, api := range []API{Chat, Completions} {
		for _, owner := range []string{"", "vllm", "sglang", "tensorrt_llm", "llamacpp", "nvidia", "openai", "m"} {
			write(fmt.Sprintf("%s, exact, owner %q", api, owner), Target{Options: Options{API: api}}, owner, text)
		}
		for _, mode := range []OutputMode{OutputMax, OutputFree} {
			write(fmt.Sprintf("%s, %s, vllm", api, mode), Target{Options: Options{API: api, Output: mode}}, "vllm", text)
		}
	}
	for _, server := range []string{"vllm", "tgi"} {
		write("exact, server "+server, Target{Options: Options{Server: server}}, "openai", text)
	}
	write("exact, server sglang, before the list of models", Target{Options: Options{Server: "sglang"}}, "", text)
	write("no stream_options", Target{Options: Options{OmitStreamOptions: true}}, "vllm", text)
	write("path and query", Target{Options: Options{URL: "https://h?k=1", Path: "/d/chat/completions?api-version=2"}},
		"vllm", text)
	open := text
	open.MaxTokens = 0
	write("no length asked for", Target{}, "vllm", open)
	ids := text
	ids.Prompt, ids.IDs = nil, json.RawMessage(`[1000,7,0,100000]`)
	write("token ids", Target{Options: Options{API: Completions}}, "vllm", ids)
	ids.IDs = json.RawMessage(`[]`)
	write("no token ids", Target{Options: Options{API: Completions}}, "vllm", ids)
	escaped := text
	escaped.Prompt = []byte("a \"quote\", a \\, a\nline, <b> & é \u2028 \xff")
	write("text with escapes", Target{}, "vllm", escaped)
	escaped.Prompt = []byte{}
	write("empty text", Target{Options: Options{API: Completions}}, "vllm", escaped)
	messages := text
	messages.Prompt, messages.Messages = nil, json.RawMessage(`[{"role":"system","content":"s"},{"role":"user","content":"u"}]`)
	messages.Tools = json.RawMessage(`[{"type":"function","function":{"name":"f"}}]`)
	write("messages and tools", Target{}, "vllm", messages)
	extra := text
	extra.Extra = json.RawMessage(`{"temperature":0.5,"priority":1,"max_tokens":9}`)
	write("extra_body and the row's extra", Target{Options: Options{
		Model:     "named",
		ExtraBody: map[string]any{"top_p": 0.9, "temperature": 0, "ignore_eos": false, "a\"b": nil},
	}}, "", extra)
	payload := Body{Payload: json.RawMessage(`{"messages":[],"stream":false,"max_tokens":3,"stream_options":{"include_usage":false}}`), MaxTokens: 7, RequestID: "w/0/1", Stream: true}
	write("payload", Target{}, "vllm", payload)
	write("payload, no stream_options", Target{Options: Options{OmitStreamOptions: true}}, "vllm", payload)
	payload.Payload = json.RawMessage(` {"model":"own","prompt":"x"} `)
	write("payload with a model", Target{Options: Options{API: Completions}}, "vllm", payload)
	auth := config.HTTPClientConfig{
		BasicAuth: &config.BasicAuth{Username: "u", Password: "p"},
		HTTPHeaders: &config.Headers{Headers: map[string]config.Header{
			"X-B": {Values: []string{"1", "2"}}, "x-a": {Secrets: []config.Secret{"s3cret"}}, "X-C": {Values: []string{"a\r\nInjected: yes"}},
		}},
	}
	write("basic_auth, http_headers, prefix", Target{Options: Options{URL: "https://[::1]:8443/pre/fix/", HTTP: auth}}, "vllm", text)
	mark := RequestFields{CacheSalt: "s", User: `re"play`, Headers: map[string]string{"x-tenant": "canary", "X-B": "mark", "X-D": "4"}}
	marked := text
	marked.Request = mark
	write("mark", Target{Options: Options{API: Completions}}, "vllm", marked)
	marked.Extra = json.RawMessage(`{"user":"row","cache_salt":"r"}`)
	write("mark over extra_body, the row's extra and http_headers", Target{
		Options: Options{ExtraBody: map[string]any{"user": "all", "cache_salt": "c"}, HTTP: auth},
	}, "vllm", marked)
	payload.Payload = json.RawMessage(`{"messages":[],"user":"own"}`)
	payload.Request = RequestFields{User: "replay"}
	write("mark over a payload", Target{}, "vllm", payload)
	quiet := text
	quiet.Stream, quiet.RequestID = false, ""
	write("not streamed", Target{}, "vllm", quiet)
	quiet.Prompt, quiet.Payload = nil, json.RawMessage(`{"messages":[],"stream":true,"stream_options":{"include_usage":true},"max_tokens":3}`)
	write("payload and extra_body that would stream, not streamed",
		Target{Options: Options{ExtraBody: map[string]any{"stream": true, "top_p": 0.9}}}, "vllm", quiet)
	golden(t, "requests.golden", out.Bytes())
}

// checkMessage parses a message with net/http and checks its length and its JSON.
func checkMessage(t *testing.T, m []byte) {
	t.Helper()
	rest := bufio.NewReader(bytes.NewReader(m))
	r, err := http.ReadRequest(rest)
	if err != nil {
		t.Fatalf("%v in %q", err, m)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil || rest.Buffered() != 0 || !json.Valid(body) || r.Header.Get("Content-Length") != strconv.Itoa(len(body)) {
		t.Errorf("%v, %d bytes behind the body, valid %v: %s", err, rest.Buffered(), json.Valid(body), m)
	}
}

func TestRequestErrors(t *testing.T) {
	for name, c := range map[string]struct {
		api  API
		body Body
		want string
	}{
		"nothing":          {Chat, Body{RequestID: "w/1/2"}, "request w/1/2: want one of prompt, ids, messages and payload, got 0"},
		"two":              {Chat, Body{Prompt: []byte("a"), Payload: []byte("{}")}, "got 2"},
		"ids in chat":      {Chat, Body{IDs: json.RawMessage(`[1]`)}, "token ids: want api completions, got chat"},
		"messages":         {Completions, Body{Messages: []byte("[]")}, "messages: want api chat, got completions"},
		"payload array":    {Chat, Body{Payload: []byte("[]")}, "payload: want a JSON object"},
		"payload cut":      {Chat, Body{Payload: []byte(`{"a":1`)}, "payload: want a JSON object"},
		"payload value":    {Chat, Body{Payload: []byte(`{"a":}`)}, "payload: want a JSON object: a: "},
		"payload key":      {Chat, Body{Payload: []byte(`{1:2}`)}, "payload: want a JSON object"},
		"payload and more": {Chat, Body{Payload: []byte(`{} {}`)}, "payload: want one JSON object, got more behind it"},
		"extra":            {Chat, Body{Prompt: []byte("a"), Extra: []byte(`"x"`)}, "extra: want a JSON object"},
	} {
		_, err := newClient(t, Target{Options: Options{API: c.api}}).AppendRequest(nil, c.body)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: want %q, got %v", name, c.want, err)
		}
	}
}

// A large message is built in one buffer, which is grown once.
func TestRequestGrowsOnce(t *testing.T) {
	c := newClient(t, Target{Options: Options{API: Completions}})
	ids := json.RawMessage("[1000" + strings.Repeat(",99999", 130_000) + "]")
	for _, b := range []Body{{IDs: ids, Stream: true}, {Prompt: bytes.Repeat([]byte(" about"), 150_000), Stream: true}} {
		m, err := c.AppendRequest(nil, b)
		if err != nil {
			t.Fatal(err)
		}
		if spare := cap(m) - len(m); spare > headerRoom+8<<10 { // the allocator rounds up to pages
			t.Errorf("%d bytes of room are left over %d", spare, len(m))
		}
		again, err := c.AppendRequest(m[:0], b)
		if err != nil || &again[0] != &m[0] {
			t.Errorf("a buffer that suffices was not used: %v", err)
		}
	}
}
