package trace

import (
	"strconv"

	"replayd/internal/trace/ids"
)

// Bailian's format is that of alibaba-edu/qwen-bailian-usagetraces-anon (its README, as of 2026). Timestamps are
// seconds from the start, blocks have 16 tokens, and a chat names its parent chat. A row's input includes the earlier chats of
// its conversation.
const bailianBlock = 16

// noParent is the parent_chat_id of a chat that begins a conversation.
const noParent = -1

// chat reads the fields that only Bailian's rows have. It ignores the type (text, search, image, file).
func (o *object) chat(r *row) {
	id := func(key string, otherwise int64) int64 {
		v := o.value(key)
		if v == nil {
			return otherwise
		}
		n, kind := idOf(v)
		if kind == 0 {
			o.fault(key, "a number or a text", shown(v))
		}
		return int64(n)
	}
	o.needs("chat_id", "a number or a text")
	r.chat, r.parent = id("chat_id", 0), id("parent_chat_id", noParent)
	if o.value("turn") != nil {
		r.Turn = max(o.length("turn"), 1) - 1
	}
}

// chats maps each chat to its conversation. A chat belongs to the conversation of its parent if the parent stands
// before it in the file, else it begins its own.
type chats struct {
	ids   ids.Table
	first ids.Pages[uint32] // by chat, from 0: the number of the chat that began its conversation
}

// add registers a row during the check and sets its session.
func (c *chats) add(r *row) {
	parent := c.ids.Find(uint64(r.parent))
	number, known := c.ids.Add(uint64(r.chat))
	if !known {
		c.first.Push(number)
	}
	if parent != 0 && parent != number {
		*c.first.At(number - 1) = *c.first.At(parent - 1)
	}
	c.find(r)
}

func (c *chats) find(r *row) {
	first := uint64(r.chat)
	if number := c.ids.Find(first); number != 0 { // 0: the file has changed
		first = c.ids.ID(*c.first.At(number - 1))
	}
	r.Session = strconv.FormatInt(int64(first), 10)
}
