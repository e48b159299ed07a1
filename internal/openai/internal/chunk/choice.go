package chunk

// A choice holds the relevant fields of one choice of an answer.
type choice struct {
	own, ids                     value // text and token ids of a completion
	part                         part  // its delta or message
	finish                       []byte
	native, specific, err, usage value // native_finish_reason, provider_specific_fields, error, usage: few servers send them
	other                        value // the first member without a meaning, from its name on
}

func (w *scanner) choice(ch *choice, f Form) bool {
	return w.object(func(key []byte) (ok bool) {
		switch string(key) {
		case "index", "logprobs":
			ok = w.skip()
		case "text":
			ch.own, ok = w.value()
		case "token_ids":
			ch.ids, ok = w.value()
		case "delta":
			if f != Streamed {
				return w.other(&ch.other, key)
			}
			ok = w.part(&ch.part)
		case "message":
			if f != Whole {
				return w.other(&ch.other, key)
			}
			ok = w.part(&ch.part)
		case "finish_reason":
			ch.finish, ok = w.word()
		case "native_finish_reason":
			ch.native, ok = w.value()
		case "provider_specific_fields":
			ch.specific, ok = w.value()
		case "error":
			ch.err, ok = w.value()
		case "usage":
			ch.usage, ok = w.value()
		default:
			ok = w.other(&ch.other, key)
		}
		return ok
	})
}

// A part holds the relevant fields of a delta or a message.
type part struct {
	text, thought, reasoning, ids, calls value // thought: reasoning_content
	refusal, function, audio             value // function: function_call
	reasoningText, details, blocks       value // details: reasoning_details; blocks: thinking_blocks
	called                               bool  // one of the calls has a name or arguments
	read                                 bool
	other                                value // the first member without a meaning, from its name on
}

// answers reports whether a part has a tool call, a refusal or audio.
func (p *part) answers() bool {
	return p.called || p.refusal.some() || p.function.has("name", "arguments") || p.audio.has("data", "transcript")
}

func (p *part) reasons() bool {
	return p.thought.some() || p.reasoning.some() || p.blocks.says("thinking", "data") ||
		p.reasoningText.says("text", "summary", "data") || p.details.says("text", "summary", "data")
}

func (w *scanner) part(p *part) bool {
	if p.read { // the key occurs twice
		*p = part{}
	}
	p.read = true
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
			ok = w.toolCalls(p)
		case "refusal":
			p.refusal, ok = w.value()
		case "function_call":
			p.function, ok = w.value()
		case "audio":
			p.audio, ok = w.value()
		case "reasoning_text":
			p.reasoningText, ok = w.value()
		case "reasoning_details":
			p.details, ok = w.value()
		case "thinking_blocks":
			p.blocks, ok = w.value()
		default:
			ok = w.other(&p.other, key)
		}
		return ok
	})
}

func (w *scanner) toolCalls(p *part) bool {
	w.space()
	start := w.i
	p.called = false
	ok := w.calls(func(c call) { p.called = p.called || c.name.some() || c.arguments.some() })
	p.calls = w.b[start:w.i]
	return ok
}

// A call is the name and the arguments of a tool call.
type call struct{ name, arguments value }

// calls parses a list of tool calls and calls each for every call.
func (w *scanner) calls(each func(call)) bool {
	return w.array(func() bool {
		var function, custom call
		ok := w.object(func(key []byte) bool {
			switch string(key) {
			case "function":
				return w.call(&function)
			case "custom":
				return w.call(&custom)
			}
			return w.skip()
		})
		if ok {
			each(function)
			each(custom)
		}
		return ok
	})
}

func (w *scanner) call(c *call) bool {
	*c = call{}
	var input value // the arguments of a custom tool
	ok := w.object(func(key []byte) (ok bool) {
		switch string(key) {
		case "name":
			c.name, ok = w.value()
		case "arguments":
			c.arguments, ok = w.value()
		case "input":
			input, ok = w.value()
		default:
			ok = w.skip()
		}
		return ok
	})
	if c.arguments == nil {
		c.arguments = input
	}
	return ok
}

// other skips a member's value, and keeps the first one that has content and is not ignored.
func (w *scanner) other(kept *value, key []byte) bool {
	w.space()
	start := w.i
	v, ok := w.value()
	if ok && *kept == nil && v.some() && !ignored[string(key)] {
		*kept = w.b[w.nameBefore(start):w.i]
	}
	return ok
}

// wordBytes bounds a finish reason with escapes.
const wordBytes = 64

// word parses a string, or the type of an object. Of a string with escapes it may return only the beginning. Other
// values are skipped.
func (w *scanner) word() (word []byte, ok bool) {
	switch w.peek() {
	case '"':
	case '{':
		return w.typed()
	default:
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

// typed parses an object and returns its type.
func (w *scanner) typed() (word []byte, ok bool) {
	ok = w.object(func(key []byte) (ok bool) {
		if string(key) != "type" {
			return w.skip()
		}
		if word = nil; w.peek() != '"' {
			return w.skip()
		}
		word, ok = w.word()
		return ok
	})
	return word, ok
}
