package replay

import "replayd/internal/dispatch"

// A build is a message to build: the row and a buffer for the message.
type build struct {
	row *dispatch.Row
	buf []byte
}

// build builds messages for the dispatcher, one at a time and ahead of their due instants.
func (r *Runner) build() {
	var prompt []byte // reused between messages
	for {
		b := r.nextBuild()
		if b.row == nil {
			return
		}
		var m dispatch.Message
		m, prompt = r.message(b.row, b.buf, prompt)
		r.tell(dispatch.Event{Kind: dispatch.Built, Row: b.row, Message: m})
	}
}

// nextBuild waits for the next message to build. After an empty build no other follows. After a Step that sends, the builder chooses the
// row, so that the choice takes no time between a due instant and a write.
func (r *Runner) nextBuild() (b build) {
	r.mu.Lock()
	for r.toBuild.row == nil && !r.over {
		if given := r.step(dispatch.Event{Kind: dispatch.Look}, nil); len(given) > 0 {
			r.mu.Unlock()
			r.start(given)
			r.mu.Lock()
		} else if r.toBuild.row == nil && !r.over {
			r.builder.Wait()
		}
	}
	b, r.toBuild = r.toBuild, build{}
	r.mu.Unlock()
	return b
}

// messageFrame is an upper estimate of the bytes of a message without the row's own content.
const messageFrame = 1 << 10

// bytes estimates the size of a row's message without answers to earlier turns.
func (r *Runner) bytes(row *dispatch.Row) int {
	return messageFrame + r.w.Prompt.Bytes(&row.Due.Record) + row.Weight
}

// buffers keeps message buffers for reuse.
type buffers struct {
	free  [][]byte
	bytes int
}

// get returns the smallest free buffer with a capacity of n bytes or more, or a new one.
func (b *buffers) get(n int) []byte {
	best := -1
	for i, f := range b.free {
		if cap(f) >= n && (best < 0 || cap(f) < cap(b.free[best])) {
			best = i
		}
	}
	if best < 0 {
		return make([]byte, 0, n)
	}
	f := b.free[best]
	last := len(b.free) - 1
	b.free[best], b.free[last] = b.free[last], nil
	b.free = b.free[:last]
	b.bytes -= cap(f)
	return f[:0]
}

// give keeps a buffer for reuse unless that would keep more than room bytes.
func (b *buffers) give(f []byte, room int) {
	if cap(f) == 0 || b.bytes+cap(f) > room {
		return
	}
	b.free = append(b.free, f)
	b.bytes += cap(f)
}
