package openai

// A chunk is what one data event says that matters here.
type chunk struct {
	content bool   // text, reasoning, tool-call arguments or token ids: tokens that a reader gets
	bare    bool   // no choice in it, as in a usage chunk
	finish  []byte // the last choice's finish_reason; empty for none, null and ""
	usage   counts
	timings counts // llama.cpp's own figures
	failed  bool   // the server reports an error
	message string // and these are its words
}

// counts of tokens; set when the server gave them.
type counts struct {
	prompt, output, cached, reasoning int
	set                               bool
}

// maxTokens bounds what is taken for a count of tokens.
const maxTokens = 1_000_000_000

// find reads the usual shapes of a chunk in one pass, without allocating. It is false for every shape that it
// does not know for sure, JSON or not: decode then has the say, and on what find knows they agree (FuzzFind).
func (c *chunk) find(data []byte) bool {
	*c = chunk{bare: true}
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
	c.content, c.finish, c.bare = false, nil, true
	if w.null() {
		return true
	}
	return w.array(func() bool {
		c.bare = false
		var text, ids, delta bool
		var finish []byte
		ok := w.object(func(key []byte) (ok bool) {
			switch string(key) {
			case "text":
				text, ok = w.text()
			case "token_ids":
				ids, ok = w.list()
			case "delta":
				delta, ok = w.delta()
			case "finish_reason":
				finish, ok = w.word()
			default:
				ok = w.skip()
			}
			return ok
		})
		c.content = c.content || text || ids || delta
		if len(finish) > 0 {
			c.finish = finish
		}
		return ok
	})
}

func (w *walker) delta() (content, ok bool) {
	if w.null() {
		return false, true
	}
	var text, thought, reasoning, ids, calls bool
	ok = w.object(func(key []byte) (ok bool) {
		switch string(key) {
		case "content":
			text, ok = w.text()
		case "reasoning_content":
			thought, ok = w.text()
		case "reasoning":
			reasoning, ok = w.text()
		case "token_ids":
			ids, ok = w.list()
		case "tool_calls":
			calls, ok = w.calls()
		default:
			ok = w.skip()
		}
		return ok
	})
	return text || thought || reasoning || ids || calls, ok
}

func (w *walker) calls() (content, ok bool) {
	if w.null() {
		return false, true
	}
	ok = w.array(func() bool {
		var arguments bool
		ok := w.object(func(key []byte) bool {
			if string(key) != "function" {
				return w.skip()
			}
			arguments = false
			return w.null() || w.object(func(key []byte) (ok bool) {
				if string(key) != "arguments" {
					return w.skip()
				}
				arguments, ok = w.text()
				return ok
			})
		})
		content = content || arguments
		return ok
	})
	return content, ok
}

func (w *walker) usage(u *counts) bool {
	*u = counts{}
	if w.null() {
		return true
	}
	var own, detail int // SGLang has reasoning_tokens beside the details, too
	ok := w.object(func(key []byte) (ok bool) {
		switch string(key) {
		case "prompt_tokens":
			u.prompt, _, ok = w.count()
		case "completion_tokens":
			u.output, u.set, ok = w.count()
		case "reasoning_tokens":
			own, _, ok = w.count()
		case "prompt_tokens_details":
			u.cached, ok = w.member("cached_tokens")
		case "completion_tokens_details":
			detail, ok = w.member("reasoning_tokens")
		default:
			ok = w.skip()
		}
		return ok
	})
	u.reasoning = max(own, detail)
	if !u.set {
		*u = counts{}
	}
	return ok
}

func (w *walker) timings(t *counts) bool {
	*t = counts{}
	if w.null() {
		return true
	}
	ok := w.object(func(key []byte) (ok bool) {
		switch string(key) {
		case "cache_n":
			t.cached, _, ok = w.count()
		case "prompt_n":
			t.prompt, _, ok = w.count()
		case "predicted_n":
			t.output, t.set, ok = w.count()
		default:
			ok = w.skip()
		}
		return ok
	})
	t.prompt += t.cached // prompt_n leaves out what the cache held
	if !t.set {
		*t = counts{}
	}
	return ok
}

// member is one count of an object that may be null.
func (w *walker) member(name string) (n int, ok bool) {
	if w.null() {
		return 0, true
	}
	ok = w.object(func(key []byte) (ok bool) {
		if string(key) != name {
			return w.skip()
		}
		n, _, ok = w.count()
		return ok
	})
	return n, ok
}
