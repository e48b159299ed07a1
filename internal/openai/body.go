package openai

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/valyala/fasthttp"
)

// A Body is the content of one request. Exactly one of Prompt, IDs, Messages and Payload is set.
type Body struct {
	Prompt   []byte          // plain text; in chat the only user message
	IDs      json.RawMessage // a JSON array of token ids, for completions
	Messages json.RawMessage // a JSON array, for chat
	Payload  json.RawMessage // a JSON object: the whole body, except for stream and model
	Tools    json.RawMessage // a JSON array beside Messages; nil for none
	Extra    json.RawMessage // a JSON object merged into the body over everything but Request; nil for none

	MaxTokens int    // output length to request; 0: no limit. Not applied to a Payload
	RequestID string // X-Request-Id; "" for none
	Stream    bool   // false requests one JSON answer, see measure.Timeline.Whole
	Request   RequestFields
}

// AppendRequest appends the whole HTTP/1.1 message to dst, which grows at most once. It leaves out the credentials in files: a lane adds
// them. Until a model is known, configured or by Choose, the body has no model.
func (c *Client) AppendRequest(dst []byte, b Body) ([]byte, error) {
	return c.appendRequest(dst, b, c.target.Output)
}

func (c *Client) appendRequest(dst []byte, b Body, mode OutputMode) ([]byte, error) {
	fields, err := c.fields(b, mode)
	if err != nil {
		return dst, fmt.Errorf("request %s: %w", b.RequestID, err)
	}
	accept := "application/json"
	if b.Stream {
		accept = "text/event-stream, application/json"
	}
	length := 2 + max(len(fields)-1, 0) // braces and commas
	for _, f := range fields {
		length += len(f.key) + len(`"":`) + len(f.value) + len(f.text) + len(f.after)
	}
	dst, target := slices.Grow(dst, length+headerRoom), c.base.generates(c.target.API)
	dst = c.appendHeader(dst, "POST", target, accept, b.RequestID, length, b.Request)
	for i, f := range fields {
		if i == 0 {
			dst = append(dst, '{')
		} else {
			dst = append(dst, ',')
		}
		dst = append(dst, '"')
		dst = append(dst, f.key...) // already escaped, see objectFields
		dst = append(dst, `":`...)
		dst = append(append(append(dst, f.value...), f.text...), f.after...)
	}
	return append(dst, '}'), nil
}

// headerRoom is an estimate of the bytes of a message without its body. With long credentials dst grows twice.
const headerRoom = 2 << 10

// fields returns the members of the body in order: our own, then the new ones of extra_body, of the row and of Request.
func (c *Client) fields(b Body, mode OutputMode) ([]field, error) {
	n := 0
	for _, given := range []bool{b.Prompt != nil, b.IDs != nil, b.Messages != nil, b.Payload != nil} {
		if given {
			n++
		}
	}
	if n != 1 {
		return nil, fmt.Errorf("want one of prompt, ids, messages and payload, got %d", n)
	}
	if c.target.API == Chat && b.IDs != nil {
		return nil, fmt.Errorf("token ids: want api %s, got %s", Completions, Chat)
	}
	if c.target.API == Completions && b.Messages != nil {
		return nil, fmt.Errorf("messages: want api %s, got %s", Chat, Completions)
	}
	s := c.served.Load()
	var fields []field
	if s.model != "" {
		fields = append(fields, field{key: "model", value: quote(s.model)})
	}
	switch {
	case b.Payload != nil:
		own, err := objectFields(b.Payload)
		if err != nil {
			return nil, fmt.Errorf("payload: %w", err)
		}
		fields = merge(fields, own)
	case b.Messages != nil:
		fields = append(fields, field{key: "messages", value: b.Messages})
	case b.IDs != nil:
		fields = append(fields, field{key: "prompt", value: b.IDs})
	case c.target.API == Chat:
		fields = append(fields, field{key: "messages", value: []byte(`[{"role":"user","content":`), text: b.Prompt, after: []byte(`}]`)}.ready())
	default:
		fields = append(fields, field{key: "prompt", text: b.Prompt}.ready())
	}
	if b.Tools != nil {
		fields = append(fields, field{key: "tools", value: b.Tools})
	}
	if b.Payload == nil && b.MaxTokens > 0 {
		fields = append(fields, lengthFields(c.target.API, mode, s.engine, b.MaxTokens)...)
	}
	fields = merge(fields, c.extra)
	extra, err := objectFields(b.Extra)
	if err != nil {
		return nil, fmt.Errorf("extra: %w", err)
	}
	fields = merge(fields, extra)
	fields = merge(fields, b.Request.fields())
	if b.Stream {
		fields = merge(fields, []field{{key: "stream", value: []byte("true")}})
		if c.target.OmitStreamOptions {
			return slices.DeleteFunc(fields, func(f field) bool { return f.key == "stream_options" }), nil
		}
		if !slices.ContainsFunc(fields, func(f field) bool { return f.key == "stream_options" }) {
			fields = append(fields, field{key: "stream_options", value: c.streamOptions()})
		}
		return fields, nil
	}
	// A payload, or extra_body, may ask for a stream; without one, servers refuse options of it.
	return slices.DeleteFunc(fields, func(f field) bool { return f.key == "stream" || f.key == "stream_options" }), nil
}

// streamOptions returns the options of a stream. continuous_usage_stats is vLLM's (vllm-project/vllm:
// vllm/entrypoints/openai/engine/protocol.py) and TensorRT-LLM's.
func (c *Client) streamOptions() []byte {
	if c.target.PerChunk {
		return []byte(`{"include_usage":true,"continuous_usage_stats":true}`)
	}
	return []byte(`{"include_usage":true}`)
}

func lengthFields(api API, mode OutputMode, e engine, n int) []field {
	number := strconv.AppendInt(nil, int64(n), 10)
	limit := field{key: "max_tokens", value: number}
	if api == Chat && e.maxCompletion {
		limit.key = "max_completion_tokens"
	}
	switch {
	case mode == OutputFree:
		return nil
	case mode == OutputMax || e.strict:
		return []field{limit}
	}
	fields := []field{limit}
	if e.min {
		fields = append(fields, field{key: "min_tokens", value: number})
	}
	return append(fields, field{key: "ignore_eos", value: []byte("true")})
}

// appendHeader appends the head of a message; a negative length means that there is no body.
func (c *Client) appendHeader(dst []byte, method, target, accept, id string, length int, fields RequestFields) []byte {
	var h fasthttp.RequestHeader
	h.SetMethod(method)
	h.SetRequestURI(target)
	h.SetHost(cmp.Or(c.target.Host, c.base.host))
	h.SetUserAgent(c.target.UserAgent)
	if length >= 0 {
		h.SetContentType("application/json")
		h.SetContentLength(length)
	}
	h.Set("Accept", accept)
	h.Set("Accept-Encoding", "identity") // compression would delay and merge the chunks of a stream
	if id != "" {
		h.Set("X-Request-Id", id)
	}
	for _, line := range c.inline {
		h.Add(line.name, line.value)
	}
	fields.setHeaders(&h)
	c.hide(fields.secrets())
	return h.AppendBytes(dst)
}
