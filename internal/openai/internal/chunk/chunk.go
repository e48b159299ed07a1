// Package chunk parses the JSON that a server of the OpenAI API sends: stream chunks, complete answers, errors and lists of
// models. It parses in one pass, keeps sub-slices of the input and does not allocate for a chunk. Escapes in names and
// texts, unusual number formats and errors take a slower path with the same result.
package chunk

// A Form is the form of an answer.
type Form uint8

// Forms of an answer.
const (
	Streamed Form = iota // each choice of a chunk has a delta
	Whole                // not streamed: each choice has a message
)

// A Chunk holds the relevant fields of one data event, or of an answer that is not streamed.
type Chunk struct {
	Form Form // set by the caller, like Keep; Read does not change them
	Keep bool // keep the texts; see Texts

	Content bool   // has text, reasoning, tool-call arguments or token ids: tokens for the client
	Answer  bool   // has text or tool-call arguments
	Thought bool   // has reasoning
	Bare    bool   // has no choice, like a usage chunk
	Finish  []byte // finish_reason of the last choice, possibly cut; empty if it is missing, null or ""
	Usage   Counts
	Timings Counts // llama.cpp's own counts
	Failed  bool   // the server reports an error
	Message string // error text, at most MaxMessage bytes
	Short   bool   // not a JSON object, but the beginning of one

	said    said  // the texts, if Keep is set and there is one choice
	several value // the choices, if Keep is set and there are several
}

// said holds the texts of a choice, by kind.
type said struct{ content, reasoning, calls value }

// Read parses a chunk in one pass. It keeps sub-slices of data, and allocates only for an error's text. It returns false if
// data is not a JSON object, is nested deeper than deepest, or if stop returned true. Read calls stop from time to time; it
// may be nil. If a key occurs twice, the last value counts, as in encoding/json.
// time and ends it when it is true; nil: never. Of a key that comes twice the last value counts, as in encoding/json.
func (c *Chunk) Read(data []byte, stop func() bool) bool {
	*c = Chunk{Form: c.Form, Keep: c.Keep, Bare: true}
	w := scanner{b: data, stop: stop}
	var fault value
	ok := w.peek() == '{' && w.object(func(key []byte) (ok bool) {
		switch string(key) {
		case "choices":
			return w.choices(c)
		case "usage":
			return w.usage(&c.Usage)
		case "timings":
			return w.timings(&c.Timings)
		case "error":
			fault, ok = w.value()
			return ok
		}
		return w.skip()
	})
	if !ok {
		c.Short = w.i == len(data)
		return false
	}
	if w.space(); w.i < len(data) {
		return false
	}
	if len(fault) > 0 {
		c.Message, c.Failed = fault.fault()
	}
	return true
}

func (w *scanner) choices(c *Chunk) bool {
	c.Content, c.Answer, c.Thought = false, false, false
	c.said, c.several, c.Finish, c.Bare = said{}, nil, nil, true
	w.space()
	start, several := w.i, false
	ok := w.array(func() bool {
		var ch choice
		ok := w.choice(&ch, c.Form)
		c.Answer, c.Thought = c.Answer || ch.answers(), c.Thought || ch.part.reasons()
		c.Content = c.Answer || c.Thought || c.Content || ch.ids.some() || ch.part.ids.some()
		if len(ch.finish) > 0 {
			c.Finish = ch.finish
		}
		if c.Keep {
			c.said = ch.said()
		}
		several, c.Bare = !c.Bare, false
		return ok
	})
	if c.Keep && several {
		c.said, c.several = said{}, w.b[start:w.i]
	}
	return ok
}

// A choice holds the relevant fields of one choice of an answer.
type choice struct {
	own, ids value // text and token ids of a completion
	part     part  // its delta or message
	finish   []byte
}

// answers reports whether the choice has text or tool-call arguments.
func (ch *choice) answers() bool { return ch.own.some() || ch.part.text.some() || ch.part.called }

// said returns the texts of a choice. Some versions of vLLM send one reasoning text under both names.
func (ch *choice) said() said {
	s := said{content: ch.part.text, reasoning: ch.part.thought, calls: ch.part.calls}
	if !s.content.says() {
		s.content = ch.own
	}
	if !s.reasoning.says() {
		s.reasoning = ch.part.reasoning
	}
	return s
}

// choice parses a choice of an answer of the given form.
func (w *scanner) choice(ch *choice, f Form) bool {
	return w.object(func(key []byte) (ok bool) {
		switch string(key) {
		case "text":
			ch.own, ok = w.value()
		case "token_ids":
			ch.ids, ok = w.value()
		case "delta":
			if f != Streamed {
				return w.skip()
			}
			ok = w.part(&ch.part)
		case "message":
			if f != Whole {
				return w.skip()
			}
			ok = w.part(&ch.part)
		case "finish_reason":
			ch.finish, ok = w.word()
		default:
			ok = w.skip()
		}
		return ok
	})
}

// A part holds the relevant fields of a delta or a message.
type part struct {
	text, thought, reasoning, ids, calls value
	called                               bool // a tool call has arguments
}

func (p *part) reasons() bool { return p.thought.some() || p.reasoning.some() }

func (w *scanner) part(p *part) bool {
	*p = part{}
	return w.object(func(key []byte) (ok bool) {
		switch string(key) {
		case "content":
			p.text, ok = w.value()
		case "reasoning_content":
			p.thought, ok = w.value()
		case "reasoning":
			p.reasoning, ok = w.value()
		case "token_ids":
			p.ids, ok = w.value()
		case "tool_calls":
			w.space()
			start := w.i
			p.called = false
			ok = w.eachCall(func(arguments value) { p.called = p.called || arguments.some() })
			p.calls = w.b[start:w.i]
		default:
			ok = w.skip()
		}
		return ok
	})
}

// eachCall calls each with the arguments of every tool call.
func (w *scanner) eachCall(each func(arguments value)) bool {
	return w.array(func() bool {
		var own value
		ok := w.object(func(key []byte) bool {
			if string(key) != "function" {
				return w.skip()
			}
			own = nil
			return w.object(func(key []byte) (ok bool) {
				if string(key) != "arguments" {
					return w.skip()
				}
				own, ok = w.value()
				return ok
			})
		})
		each(own)
		return ok
	})
}

// wordBytes bounds a finish reason with escapes.
const wordBytes = 64

// word parses a string. Of a string with escapes it may return only the beginning. Other values are skipped.
func (w *scanner) word() (word []byte, ok bool) {
	if w.peek() != '"' {
		return nil, w.skip()
	}
	raw, plain, ok := w.quoted()
	for _, c := range raw {
		plain = plain && c < 0x80
	}
	if !plain {
		raw, _ = appendUnquoted(nil, raw, wordBytes)
	}
	return raw, ok
}
