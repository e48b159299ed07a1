package openai

// A chunk is what one data event says that matters here, or an answer in one piece.
type chunk struct {
	form    form   // how it is read: stays when the rest is set again
	content bool   // text, reasoning, tool-call arguments or token ids: tokens that a reader gets
	said    said   // the texts among these, if the form keeps them
	bare    bool   // no choice in it, as in a usage chunk
	finish  []byte // the last choice's finish_reason; empty for none, null and ""
	usage   counts
	timings counts // llama.cpp's own figures
	failed  bool   // the server reports an error
	message string // and these are its words
}

// A form is what to look for in a chunk.
type form struct {
	whole bool // it is an answer in one piece: a choice has a message where a chunk of a stream has a delta
	keep  bool // the texts are wanted
}

// said is what the choices of a chunk say, by what it is.
type said struct{ content, reasoning, arguments text }

// A text is a JSON string as it came, quotes and escapes included; nil for none.
type text []byte

// some reports whether it says anything.
func (t text) some() bool { return len(t) > len(`""`) }

// find reads the usual shapes of a chunk in one pass, without allocating. It is false for every shape that it
// does not know for sure, JSON or not: decode then has the say, and on what find knows they agree (FuzzFind).
func (c *chunk) find(data []byte) bool {
	*c = chunk{form: c.form, bare: true}
	w := walker{b: data}
	ok := w.object(func(key []byte) bool {
		switch string(key) {
		case "choices":
			return w.choices(c)
		case "usage":
			return w.usage(&c.usage)
		case "timings":
			return w.timings(&c.timings)
		case "error":
			return w.null()
		}
		return w.skip()
	})
	w.space()
	return ok && w.i == len(data)
}

func (w *walker) choices(c *chunk) bool {
	c.content, c.said, c.finish, c.bare = false, said{}, nil, true
	if w.null() {
		return true
	}
	return w.array(func() bool {
		first := c.bare
		c.bare = false
		var own text
		var ids bool
		var p part
		var finish []byte
		ok := w.object(func(key []byte) (ok bool) {
			switch string(key) {
			case "text":
				own, ok = w.text()
			case "token_ids":
				ids, ok = w.list()
			case "delta":
				if c.form.whole {
					return w.skip()
				}
				p, ok = w.delta(c.form)
			case "message":
				if !c.form.whole {
					return w.skip()
				}
				p, ok = w.delta(c.form)
			case "finish_reason":
				finish, ok = w.word()
			default:
				ok = w.skip()
			}
			return ok
		})
		c.content = c.content || own.some() || ids || p.some()
		if len(finish) > 0 {
			c.finish = finish
		}
		if c.form.keep {
			c.said = p.said(own)
			ok = ok && first // the texts of several are for decode to put together
		}
		return ok
	})
}

// A part is what one choice brings.
type part struct {
	text, thought, reasoning, arguments text
	ids                                 bool
}

func (p *part) some() bool {
	return p.text.some() || p.thought.some() || p.reasoning.some() || p.arguments.some() || p.ids
}

// said are its texts, and that of a completion's choice. vLLM has given one reasoning under both names for a while.
func (p *part) said(own text) said {
	s := said{content: p.text, reasoning: p.thought, arguments: p.arguments}
	if !s.content.some() {
		s.content = own
	}
	if !s.reasoning.some() {
		s.reasoning = p.reasoning
	}
	return s
}

func (w *walker) delta(f form) (p part, ok bool) {
	if w.null() {
		return part{}, true
	}
	ok = w.object(func(key []byte) (ok bool) {
		switch string(key) {
		case "content":
			p.text, ok = w.text()
		case "reasoning_content":
			p.thought, ok = w.text()
		case "reasoning":
			p.reasoning, ok = w.text()
		case "token_ids":
			p.ids, ok = w.list()
		case "tool_calls":
			p.arguments, ok = w.calls(f)
		default:
			ok = w.skip()
		}
		return ok
	})
	return p, ok
}

// calls are the arguments of tool calls: of one of those that have any, unless they are to be kept.
func (w *walker) calls(f form) (arguments text, ok bool) {
	if w.null() {
		return nil, true
	}
	ok = w.array(func() bool {
		var own text
		ok := w.object(func(key []byte) bool {
			if string(key) != "function" {
				return w.skip()
			}
			own = nil
			return w.null() || w.object(func(key []byte) (ok bool) {
				if string(key) != "arguments" {
					return w.skip()
				}
				own, ok = w.text()
				return ok
			})
		})
		if own.some() {
			ok = ok && (!f.keep || !arguments.some()) // those of several are for decode to put together
			arguments = own
		}
		return ok
	})
	return arguments, ok
}
