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

// A Chunk holds the relevant fields of one data event, or of an answer that is not streamed. docs/reference/answers.md
// has the meaning of each part.
type Chunk struct {
	Form Form // set by the caller, like Keep; Read does not change them
	Keep bool // keep the texts; see Texts

	Content bool   // has text, reasoning, a tool call or token ids: tokens for the client
	Answer  bool   // has text or a tool call
	Thought bool   // has reasoning
	Bare    bool   // has no choice, like a usage chunk
	Finish  []byte // finish_reason of the last choice, or of one that means an abort; possibly cut; empty: none
	Usage   Counts
	Timings Counts // llama.cpp's own counts
	Failed  bool   // the server reports an error
	Message string // error text, at most MaxMessage bytes
	Unread  []byte // the first part without a meaning, with its name; nil: all was understood
	Short   bool   // not a JSON object, but the beginning of one

	kept    choice // its texts are kept, if Keep is set and there is one choice
	several value  // the choices, if Keep is set and there are several
	fault   value  // of a choice
	inner   value  // usage of a choice
}

// Read parses a chunk in one pass. It keeps sub-slices of data, and allocates only for an error's text. It returns false if
// data is not a JSON object, is nested deeper than deepest, or if stop returned true. Read calls stop from time to time; it
// may be nil. If a key occurs twice, the last value counts, as in encoding/json.
func (c *Chunk) Read(data []byte, stop func() bool) bool {
	c.reset()
	w := scanner{b: data, stop: stop}
	known, odd := false, false // it has a member that chunks have; one that errors have
	ok := w.peek() == '{' && w.object(func(key []byte) (ok bool) {
		switch string(key) {
		case "choices":
			if known { // they may have come before
				c.resetChoices()
			}
			known = true
			return w.choices(c)
		case "usage":
			known = true
			return w.usage(&c.Usage)
		case "timings":
			known = true
			return w.timings(&c.Timings)
		case "object":
			var v value
			v, ok = w.value()
			odd = odd || len(v) > 1 && (v[1] == 'e' || v[1] == '\\') // error, and none of the usual ones
			return ok
		case "error", "type", "error_code", "message", "detail", "errors", "error_msg", "msg", "text":
			var v value
			v, ok = w.value()
			odd = odd || len(v) > 0 && v[0] != 'n'
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
	if len(c.inner) > 0 && !c.Usage.Set {
		(&scanner{b: c.inner}).usage(&c.Usage)
	}
	if odd || len(c.fault) > 0 {
		c.Failed, c.Message = c.fails(data)
	}
	if !c.Failed && !known {
		c.Unread = data
	}
	return true
}

func aborts(finish []byte) bool {
	_, aborts := EndOf(finish)
	return aborts
}

// reset empties the fields that Read sets. kept is large, and empty already unless texts are kept.
func (c *Chunk) reset() {
	c.resetChoices()
	c.Usage, c.Timings, c.Failed, c.Message, c.Short = Counts{}, Counts{}, false, "", false
}

func (c *Chunk) resetChoices() {
	c.Content, c.Answer, c.Thought, c.Bare = false, false, false, true
	c.Finish, c.Unread, c.several, c.fault, c.inner = nil, nil, nil, nil, nil
	if c.Keep {
		c.kept = choice{}
	}
}

func (w *scanner) choices(c *Chunk) bool {
	w.space()
	start, several := w.i, false
	ok := w.array(func() bool {
		var ch choice
		if !w.choice(&ch, c.Form) {
			return false // its values may be broken
		}
		text, thought := ch.part.text.content()
		c.Answer = c.Answer || text || ch.own.some() || ch.part.answers()
		c.Thought = c.Thought || thought || ch.part.reasons()
		c.Content = c.Answer || c.Thought || c.Content || ch.ids.some() || ch.part.ids.some()
		if len(ch.err)+len(ch.usage)+len(ch.specific)+len(ch.native) > 0 {
			c.rare(&ch)
		}
		if len(ch.finish) > 0 && !aborts(c.Finish) {
			c.Finish = ch.finish
		}
		if c.Unread == nil {
			c.Unread = ch.other
		}
		if c.Unread == nil {
			c.Unread = ch.part.other
		}
		if c.Keep {
			c.kept = ch
		}
		several, c.Bare = !c.Bare, false
		return true
	})
	if c.Keep && several {
		c.kept, c.several = choice{}, w.b[start:w.i]
	}
	return ok
}

// rare takes the members of a choice that few servers send: an error, a usage, and the finish reason of the engine behind a
// gateway. That counts if it means an abort, which LiteLLM calls stop.
func (c *Chunk) rare(ch *choice) {
	if c.fault == nil && !ch.err.empty() {
		c.fault = ch.err
	}
	var u Counts
	if (&scanner{b: ch.usage}).usage(&u); c.inner == nil && u.Set {
		c.inner = ch.usage
	}
	native := func(_ string, v value) {
		if reason, _ := (&scanner{b: v}).word(); aborts(reason) {
			ch.finish = reason
		}
	}
	ch.specific.members(native, "native_finish_reason")
	native("", ch.native)
}
