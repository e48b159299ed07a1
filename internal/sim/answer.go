package sim

import (
	"math/rand/v2"
	"strconv"
)

// words are the words of answers. With its leading space, each word is one token in the usual tokenizers.
var words = [...]string{
	"about", "after", "always", "answer", "because", "before", "between", "country", "every", "first", "from", "garden",
	"great", "here", "house", "island", "large", "letter", "light", "little", "morning", "mountain", "never", "number",
	"people", "place", "river", "simple", "small", "sound", "start", "story", "summer", "system", "table", "there",
	"think", "through", "time", "under", "water", "where", "while", "window", "winter", "with", "word", "world",
}

// answer builds the bytes of one answer by hand: at 20,000 chunks
// a second, encoding/json would take most of the CPU time.
type answer struct {
	api   *api
	head  string // start of each object, up to the bracket of choices
	draws *rand.Rand
}

func newAnswer(a *api, stream bool, id, model string, created int64, draws *rand.Rand) *answer {
	object := a.object
	if stream {
		object = a.chunk
	}
	return &answer{api: a, draws: draws, head: `{"id":` + quote(a.idPrefix+id) + `,"object":"` + object +
		`","created":` + strconv.FormatInt(created, 10) + `,"model":` + model + `,"choices":[`}
}

// role appends the first chunk of a chat, which has no token.
func (a *answer) role(b []byte) []byte {
	b = append(append(b, "data: "...), a.head...)
	return append(b, `{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}`+"\n\n"...)
}

// chunk appends a chunk with the given numbers of tokens of reasoning and of text, and with usage unless that is nil. Only a chat has
// reasoning.
func (a *answer) chunk(b []byte, reasoning, tokens int, usage []byte) []byte {
	b = append(append(b, "data: "...), a.head...)
	if a.api == chat {
		b = append(b, `{"index":0,"delta":{`...)
		if reasoning > 0 {
			b = a.words(append(b, `"reasoning_content":"`...), reasoning)
			b = append(b, '"')
		}
		if reasoning > 0 && tokens > 0 {
			b = append(b, ',')
		}
		if tokens > 0 {
			b = a.words(append(b, `"content":"`...), tokens)
			b = append(b, '"')
		}
		b = append(b, `},"logprobs":null,"finish_reason":null}]`...)
		if usage != nil {
			b = append(append(b, `,"usage":`...), usage...)
		}
		return append(b, "}\n\n"...)
	}
	b = append(b, `{"index":0,"text":"`...)
	b = a.words(b, tokens)
	b = append(b, `","logprobs":null,"finish_reason":null,"stop_reason":null}],"usage":`...)
	if usage == nil {
		usage = []byte("null")
	}
	return append(append(b, usage...), "}\n\n"...)
}

func (a *answer) words(b []byte, n int) []byte {
	for range n {
		b = append(append(b, ' '), words[a.draws.IntN(len(words))]...)
	}
	return b
}

// end appends the end of a stream, after its last token.
func (a *answer) end(b []byte, reason string, usage []byte) []byte {
	b = append(append(b, "data: "...), a.head...)
	if a.api == chat {
		b = append(append(b, `{"index":0,"delta":{"content":""},"logprobs":null,"finish_reason":"`...), reason...)
		b = append(b, `","stop_reason":null}]}`+"\n\n"...)
	} else {
		b = append(append(b, `{"index":0,"text":"","logprobs":null,"finish_reason":"`...), reason...)
		b = append(b, `","stop_reason":null}],"usage":null}`+"\n\n"...)
	}
	if usage != nil {
		b = append(append(append(b, "data: "...), a.head...), `],"usage":`...)
		b = append(append(b, usage...), "}\n\n"...)
	}
	return append(b, done...)
}

const done = "data: [DONE]\n\n"

// garbled appends a data line that breaks off in the middle of its JSON.
func (a *answer) garbled(b []byte) []byte {
	return append(append(append(b, "data: "...), a.head...), `{"index":0,"del`+"\n\n"...)
}

// whole returns an unstreamed answer. Only a chat has reasoning.
func (a *answer) whole(reasoning, text []byte, reason string, usage []byte) []byte {
	b := append([]byte(nil), a.head...)
	if a.api == chat {
		b = append(append(b, `{"index":0,"message":{"role":"assistant","content":"`...), text...)
		b = append(b, '"')
		if len(reasoning) > 0 {
			b = append(append(append(b, `,"reasoning_content":"`...), reasoning...), '"')
		}
		b = append(b, '}')
	} else {
		b = append(append(b, `{"index":0,"text":"`...), text...)
		b = append(b, '"')
	}
	b = append(append(b, `,"logprobs":null,"finish_reason":"`...), reason...)
	b = append(append(b, `","stop_reason":null}],"usage":`...), usage...)
	return append(b, '}')
}

// usageJSON returns OpenAI's usage object, in tokens. Without reasoning it has no details of the output.
func usageJSON(prompt, output, cached, reasoning int) []byte {
	b := strconv.AppendInt([]byte(`{"prompt_tokens":`), int64(prompt), 10)
	b = strconv.AppendInt(append(b, `,"total_tokens":`...), int64(prompt+output), 10)
	b = strconv.AppendInt(append(b, `,"completion_tokens":`...), int64(output), 10)
	b = strconv.AppendInt(append(b, `,"prompt_tokens_details":{"cached_tokens":`...), int64(cached), 10)
	if reasoning > 0 {
		b = strconv.AppendInt(append(b, `},"completion_tokens_details":{"reasoning_tokens":`...), int64(reasoning), 10)
	}
	return append(b, "}}"...)
}

func errorJSON(status int, kind, text string) []byte {
	return []byte(`{"error":{"message":` + quote(text) + `,"type":` + quote(kind) + `,"param":null,"code":` + strconv.Itoa(status) + `}}`)
}
