package openai

// A chunk is what one data event says that matters here, or an answer in one piece.
type chunk struct {
	form    form   // how it is read: stays when the rest is set again
	content bool   // text, reasoning, tool-call arguments or token ids: tokens that a reader gets
	said    said   // the texts among these, if the form keeps them and there is one choice
	several value  // its choices, if the form keeps the texts and there is more than one
	bare    bool   // no choice in it, as in a usage chunk
	finish  []byte // the last choice's finish_reason, or the beginning of one; empty for none, null and ""
	usage   counts
	timings counts // llama.cpp's own figures
	failed  bool   // the server reports an error
	message string // and these are its words, errorBodyBytes of them at most
	short   bool   // it is no JSON object, but the beginning of one
}

// A form is what to look for in a chunk.
type form struct {
	whole bool        // it is an answer in one piece: a choice has a message where a chunk of a stream has a delta
	keep  bool        // the texts are wanted
	stop  func() bool // ends the reading when it is true; nil: never asked
}

// said is what a choice says, by what it is.
type said struct{ content, reasoning, calls value }

// find reads a chunk in one pass and keeps parts of data, so that it allocates nothing but for an error's words. It is
// false when data is no JSON object, is nested deeper than deepest, or the reading was stopped. Of a key that comes twice
// the last value counts, as in encoding/json.
func (c *chunk) find(data []byte) bool {
	*c = chunk{form: c.form, bare: true}
	w := walker{b: data, stop: c.form.stop}
	var fault value
	ok := w.peek() == '{' && w.object(func(key []byte) (ok bool) {
		switch string(key) {
		case "choices":
			return w.choices(c)
		case "usage":
			return w.usage(&c.usage)
		case "timings":
			return w.timings(&c.timings)
		case "error":
			fault, ok = w.value()
			return ok
		}
		return w.skip()
	})
	w.space()
	if !ok || w.i < len(data) {
		c.short = !ok && w.i == len(data)
		return false
	}
	if len(fault) > 0 {
		c.message, c.failed = fault.fault()
	}
	return true
}

func (w *walker) choices(c *chunk) bool {
	c.content, c.said, c.several, c.finish, c.bare = false, said{}, nil, nil, true
	w.space()
	start, several := w.i, false
	ok := w.array(func() bool {
		var ch choice
		ok := w.choice(&ch, c.form.whole)
		c.content = c.content || ch.some()
		if len(ch.finish) > 0 {
			c.finish = ch.finish
		}
		if c.form.keep {
			c.said = ch.said()
		}
		several, c.bare = !c.bare, false
		return ok
	})
	if c.form.keep && several {
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

// choice reads one: whole is that it is of an answer in one piece.
func (w *walker) choice(ch *choice, whole bool) bool {
	return w.object(func(key []byte) (ok bool) {
		switch string(key) {
		case "text":
			ch.own, ok = w.value()
		case "token_ids":
			ch.ids, ok = w.value()
		case "delta":
			if whole {
				return w.skip()
			}
			ok = w.part(&ch.part)
		case "message":
			if !whole {
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

func (w *walker) part(p *part) bool {
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
func (w *walker) eachCall(each func(arguments value)) bool {
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

// word reads a string, or the beginning of one that has escapes. Any other value is passed over.
func (w *walker) word() (word []byte, ok bool) {
	if w.peek() != '"' {
		return nil, w.skip()
	}
	raw, plain, ok := w.quoted()
	for _, c := range raw {
		plain = plain && c < 0x80
	}
	if !plain {
		raw, _ = appendUnquoted(nil, raw, shownBytes)
	}
	return raw, ok
}
