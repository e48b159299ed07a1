// Package chunk reads the JSON that a server of the OpenAI API sends: a chunk of a stream, an answer in one piece, an
// error, a list of models. It walks over the bytes once, keeps parts of them and allocates nothing for a chunk; names and
// texts with escapes, numbers that are written in an odd way and errors take a slower way to the same result.
package chunk

// A Form is how an answer comes.
type Form uint8

// Forms.
const (
	Streamed Form = iota // each choice of a chunk has a delta
	Whole                // in one piece: each choice has a message
)

// A Chunk has the relevant fields of one data event, or of an answer in one piece.
type Chunk struct {
	Form Form // how it is read. It stays when the rest is set again, and so does Keep
	Keep bool // the texts are wanted, see Texts

	Content bool   // text, reasoning, tool-call arguments or token ids: tokens that a reader gets
	Bare    bool   // no choice in it, as in a usage chunk
	Finish  []byte // the last choice's finish_reason, or the beginning of one; empty for none, null and ""
	Usage   Counts
	Timings Counts // llama.cpp's own figures
	Failed  bool   // the server reports an error
	Message string // and these are its words, MaxMessage bytes of them at most
	Short   bool   // it is no JSON object, but the beginning of one

	said    said  // the texts, if they are wanted and there is one choice
	several value // the choices, if the texts are wanted and there is more than one
}

// said is what a choice says, by what it is.
type said struct{ content, reasoning, calls value }

// Read reads a chunk in one pass and keeps parts of data, so that it allocates nothing but for an error's words. It is
// false when data is no JSON object, is nested deeper than deepest, or the reading was stopped: stop is asked from time to
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
	c.Content, c.said, c.several, c.Finish, c.Bare = false, said{}, nil, nil, true
	w.space()
	start, several := w.i, false
	ok := w.array(func() bool {
		var ch choice
		ok := w.choice(&ch, c.Form)
		c.Content = c.Content || ch.some()
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

// A choice is what one of an answer's choices has that matters here.
type choice struct {
	own, ids value // a completion's text and token ids
	part     part  // what it brings
	finish   []byte
}

func (ch *choice) some() bool { return ch.part.some() || ch.own.some() || ch.ids.some() }

// said are its texts. vLLM has given one reasoning under both names for a while.
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

// choice reads one of an answer of a form.
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

// A part is what one choice brings.
type part struct {
	text, thought, reasoning, ids, calls value
	called                               bool // a call has arguments
}

func (p *part) some() bool {
	return p.text.some() || p.thought.some() || p.reasoning.some() || p.ids.some() || p.called
}

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

// eachCall calls each with the arguments of tool calls.
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

// wordBytes bounds a finish reason that has escapes.
const wordBytes = 64

// word reads a string, or the beginning of one that has escapes. Any other value is passed over.
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
