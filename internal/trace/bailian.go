package trace

import (
	"math"
	"strconv"
	"time"
)

// decodeBailian reads a row of alibaba-edu/qwen-bailian-usagetraces-anon (its README, as of 2026): seconds from the start,
// blocks of 16 tokens, and chats that name the one that they follow. A row's input holds the chats before it.
func decodeBailian(line []byte, r *row) []fault {
	return dialect{unit: time.Second, lengths: true, chats: true}.decode(line, r)
}

const bailianBlock = 16

// noParent is the parent_chat_id of a chat that begins a conversation.
const noParent = -1

// readChat reads what only Bailian's rows have. The type (text, search, image, file) is passed over.
func (f *fields) readChat(key string, c *cursor) bool {
	r := f.row
	switch key {
	case "chat_id":
		n, ok := c.whole()
		r.chat, f.chat = int64(n), true
		return ok && n <= math.MaxInt64
	case "parent_chat_id":
		negative := c.accept('-')
		digit := c.digit() || !negative // nothing may stand between
		n, ok := c.whole()
		if r.parent = int64(n); negative {
			r.parent = -r.parent
		}
		return ok && digit && n <= math.MaxInt64
	case "turn":
		n, ok := c.whole()
		r.Turn = int(n) - 1
		return ok && n >= 1 && n <= MaxTokens
	case "type":
		_, ok := c.word()
		return ok
	}
	return false
}

// chat does the same the long way.
func (o *object) chat(r *row) {
	id := func(key string, otherwise int64) int64 {
		v := o.value(key)
		if v == nil {
			return otherwise
		}
		n, err := strconv.ParseInt(string(v), 10, 64)
		if err != nil {
			o.fault(key, "an integer of 64 bits", shown(v))
		}
		return n
	}
	if o.value("chat_id") == nil {
		o.fault("chat_id", "an integer of 64 bits", "none")
	}
	r.chat, r.parent = id("chat_id", 0), id("parent_chat_id", noParent)
	if o.value("turn") != nil {
		r.Turn = max(o.length("turn"), 1) - 1
	}
}

// chats know which conversation a chat belongs to: that of its parent, where the parent stands before it in the file, else
// its own. What is kept while the file is open are the chats that follow others.
type chats struct {
	first map[int64]int64    // the chat that began the conversation
	seen  map[int64]struct{} // chats so far, while the file is checked
}

func newChats() *chats {
	return &chats{first: map[int64]int64{}, seen: map[int64]struct{}{}}
}

// add learns of a row while the file is checked, and gives it its session.
func (c *chats) add(r *row) {
	if _, known := c.seen[r.parent]; known && r.parent != r.chat {
		first, follows := c.first[r.parent]
		if !follows {
			first = r.parent
		}
		c.first[r.chat] = first
	}
	c.seen[r.chat] = struct{}{}
	c.find(r)
}

func (c *chats) settle() { c.seen = nil }

// find gives a row its session.
func (c *chats) find(r *row) {
	first, follows := c.first[r.chat]
	if !follows {
		first = r.chat
	}
	r.Session = strconv.FormatInt(first, 10)
}
