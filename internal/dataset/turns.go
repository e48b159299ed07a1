package dataset

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"

	"replayd/internal/fault"
	"replayd/internal/trace"
)

// single reads a line with one prompt. As in AIPerf, lines of one session are sent one after the other, each without
// the earlier ones.
func (b *builder) single(o object) error {
	if o.value("turns") != nil {
		o.fault("turns", "one prompt a line: conversations are for the format "+string(MultiTurn))
		return nil
	}
	t := o.turn()
	r := t.row()
	r.Line, r.Session = o.number, o.text("session_id", trace.MaxSessionBytes)
	if b.faults.Count > 0 { // the set is refused anyway
		return nil
	}
	b.texts(t.texts...)
	return b.add(r, o.name)
}

// bytes returns the size of what is kept of a turn until it is a row.
func (t *turn) bytes() int {
	n := rowBytes + len(t.answer) + len(t.extra)
	for _, text := range t.texts {
		n += len(text)
	}
	return n
}

// row returns the row of a turn without earlier turns: a text if possible, else messages.
func (t *turn) row() trace.Record {
	r := trace.Record{OutputTokens: t.output, Extra: t.extra, Delay: t.delay}
	if t.role == "user" && len(t.texts) == 1 {
		r.Text = t.texts[0]
	} else {
		r.Messages = append(appendMessage([]byte{'['}, t.role, t.texts...), ']')
	}
	return r
}

type conversation struct {
	session, name string
	line          int
	turns         []turn
}

// multi reads a line with turns. Lines of one session are one conversation.
func (b *builder) multi(o object) error {
	var list []map[string]json.RawMessage
	if v := o.value("turns"); v == nil || json.Unmarshal(v, &list) != nil || len(list) == 0 {
		b.want(o.at, "turns", "a list of turns", fault.Excerpt(o.value("turns")))
		return nil
	}
	session := cmp.Or(o.text("session_id", trace.MaxSessionBytes), fmt.Sprintf("line %d", o.number))
	var turns []turn
	size := 0
	for i, values := range list {
		part := object{b: b, name: o.name, at: fmt.Sprintf("%s: turns[%d]", o.at, i), values: values}
		t := part.turn()
		part.countUnused()
		turns = append(turns, t)
		size += t.bytes()
	}
	if err := b.reserve(size, o.name); err != nil {
		return err
	}
	b.pending += len(turns)
	if at, known := b.sessions[session]; known {
		b.conversations[at].turns = append(b.conversations[at].turns, turns...)
		return nil
	}
	b.sessions[session] = len(b.conversations)
	b.conversations = append(b.conversations, conversation{session, o.name, o.number, turns})
	return nil
}

// either reads a line of the bundled set.
func (b *builder) either(o object) error {
	if o.value("turns") != nil {
		return b.multi(o)
	}
	return b.single(o)
}

func (b *builder) converse() error {
	b.pending = 0
	if b.faults.Count > 0 {
		return nil
	}
	for i := range b.conversations {
		if err := b.turns(&b.conversations[i]); err != nil {
			return err
		}
	}
	return nil
}

// turns makes a row of each turn. Its messages are the earlier turns, their answers, and the turn itself. A first turn
// that has the role system and nothing else is not a turn: as in AIPerf, its message stands at the head of all rows.
func (b *builder) turns(c *conversation) error {
	history := []byte{'['}
	turns := c.turns
	if t := turns[0]; len(turns) > 1 && t.role == "system" && t.delay == 0 && t.output == 0 && t.extra == nil {
		history = append(appendMessage(history, t.role, t.texts...), ',')
		turns = turns[1:]
	}
	for i, t := range turns {
		b.texts(t.texts...)
		history = appendMessage(history, t.role, t.texts...)
		if err := b.remember(len(history), fmt.Sprintf("%s:%d", c.name, c.line)); err != nil {
			return err
		}
		err := b.add(trace.Record{
			Line: c.line, Messages: append(bytes.Clone(history), ']'), Session: c.session, Turn: i,
			Delay: t.delay, OutputTokens: t.output, Extra: t.extra,
		}, c.name)
		if err != nil {
			return err
		}
		if i+1 < len(turns) {
			b.set.Unanswered = b.set.Unanswered || t.answer == ""
			history = append(appendMessage(append(history, ','), "assistant", t.answer), ',')
		}
	}
	return nil
}

// appendMessage appends a chat message. Several texts become parts of the message, as in OpenAI's API.
func appendMessage(dst []byte, role string, texts ...string) []byte {
	dst = appendString(append(dst, `{"role":`...), role)
	dst = append(dst, `,"content":`...)
	if len(texts) == 1 {
		return append(appendString(dst, texts[0]), '}')
	}
	open := byte('[')
	for _, text := range texts {
		dst = append(append(dst, open), `{"type":"text","text":`...)
		dst = append(appendString(dst, text), '}')
		open = ','
	}
	return append(dst, "]}"...)
}

func appendString(dst []byte, s string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // never fails for a string
	return append(dst, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
}
