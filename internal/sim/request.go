package sim

import (
	"encoding/json"
	"fmt"
	"hash/maphash"
	"slices"
)

// maxBody is the largest accepted request body, in bytes: 2 million tokens as text, more as ids.
const maxBody = 16 << 20

// api is one of the two APIs: its name in the log, and what differs between their answers (see answer.go).
type api struct {
	name     string
	object   string // of an answer in one piece
	chunk    string // object of a stream's chunk
	idPrefix string
}

var (
	chat        = &api{name: "chat", object: "chat.completion", chunk: "chat.completion.chunk", idPrefix: "chatcmpl-"}
	completions = &api{name: "completions", object: "text_completion", chunk: "text_completion", idPrefix: "cmpl-"}
)

// completionsMaxTokens is the default limit of a completions request, in the OpenAI API and in vLLM.
const completionsMaxTokens = 16

// body holds the known fields. Others are ignored, as in vLLM.
type body struct {
	Model         string          `json:"model"`
	Messages      []message       `json:"messages"`
	Prompt        json.RawMessage `json:"prompt"`
	Stream        bool            `json:"stream"`
	StreamOptions *struct {
		IncludeUsage    bool `json:"include_usage"`
		ContinuousUsage bool `json:"continuous_usage_stats"` // vLLM's: usage with each chunk
	} `json:"stream_options"`
	MaxTokens           *int   `json:"max_tokens"`
	MaxCompletionTokens *int   `json:"max_completion_tokens"`
	MinTokens           int    `json:"min_tokens"`
	IgnoreEOS           bool   `json:"ignore_eos"`
	N                   *int   `json:"n"`
	CacheSalt           string `json:"cache_salt"`
}

type message struct {
	Content json.RawMessage `json:"content"`
}

// A request holds what the engine needs of a body: lengths and keys, not the text.
type request struct {
	tokens    int      // in the prompt
	messages  int      // of a chat
	keys      []uint64 // of its whole blocks
	asked     int      // the body's own limit on the answer; 0 if none
	max       int      // the limit, at least 1
	min       int
	ignoreEOS bool
	stream    bool
	usage     bool // wanted at the end of the stream
	perChunk  bool // and with each chunk
}

// A refusal is an HTTP error that the request caused.
type refusal struct {
	status int
	kind   string // vLLM's error type
	text   string
}

func (r *refusal) Error() string { return r.text }

func badRequest(format string, args ...any) *refusal {
	return &refusal{status: 400, kind: "BadRequestError", text: fmt.Sprintf(format, args...)}
}

// parse parses a body. The error is a *refusal. It keeps nothing of raw.
func parse(raw []byte, a *api, o Options, seed maphash.Seed) (request, error) {
	var b body
	if err := json.Unmarshal(raw, &b); err != nil {
		return request{}, badRequest("the body is not the JSON object that this API takes: %v", err)
	}
	p := newPrompt(seed, o.BlockTokens)
	if b.Model != "" && b.Model != o.Model && !slices.Contains(o.Adapters, b.Model) {
		return request{}, &refusal{status: 404, kind: "NotFoundError", text: fmt.Sprintf("model: want %q, got another", o.Model)}
	}
	p.salt(b.CacheSalt)
	var err error
	if a == chat {
		p.template(o.TemplateTokens)
		err = p.messages(b.Messages)
	} else {
		err = p.completion(b.Prompt)
	}
	if err != nil {
		return request{messages: len(b.Messages)}, badRequest("%v", err)
	}
	return b.request(a, o, p)
}

// request checks the numbers of a body against the prompt.
func (b *body) request(a *api, o Options, p *prompt) (request, error) {
	r := request{tokens: p.tokens, messages: len(b.Messages), keys: p.keys, min: b.MinTokens, ignoreEOS: b.IgnoreEOS, stream: b.Stream}
	if b.StreamOptions != nil {
		if !b.Stream {
			return r, badRequest("stream_options: want stream: true with them, got false")
		}
		r.usage, r.perChunk = b.StreamOptions.IncludeUsage, b.StreamOptions.IncludeUsage && b.StreamOptions.ContinuousUsage
	}
	if b.N != nil && *b.N != 1 {
		return r, badRequest("n: want 1, the only number of answers simulated, got %d", *b.N)
	}
	room := o.MaxModelLen - p.tokens
	if room < 1 {
		return r, badRequest("prompt: want at most %d tokens, one fewer than the model's context, got %d", o.MaxModelLen-1, p.tokens)
	}
	asked := b.MaxTokens
	if a == chat && b.MaxCompletionTokens != nil {
		asked = b.MaxCompletionTokens
	}
	r.max = room
	switch {
	case asked != nil && *asked < 1:
		return r, badRequest("max_tokens: want an integer ≥ 1, got %d", *asked)
	case asked != nil:
		r.asked = *asked
		r.max = min(room, *asked)
	case a == completions:
		r.max = min(room, completionsMaxTokens)
	}
	if b.MinTokens < 0 || b.MinTokens > r.max {
		return r, badRequest("min_tokens: want an integer from 0 to the limit of %d, got %d", r.max, b.MinTokens)
	}
	return r, nil
}
