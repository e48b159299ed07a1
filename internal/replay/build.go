package replay

import "replayd/internal/dispatch"

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
		r.deliver(dispatch.Event{Kind: dispatch.Built, Row: b.row, Message: m})
	}
}

// nextBuild waits for the next message to build. After an empty build no other follows. After a Step that sends, the
// builder chooses the row, so that the choice takes no time between a due instant and a write.
func (r *Runner) nextBuild() (b build) {
	r.mu.Lock()
	for r.builder.next.row == nil && !r.over {
		if given := r.step(dispatch.Event{Kind: dispatch.Poll}, nil); len(given) > 0 {
			r.mu.Unlock()
			r.start(given)
			r.mu.Lock()
		} else if r.builder.next.row == nil && !r.over {
			r.builder.wanted.Wait()
		}
	}
	b, r.builder.next = r.builder.next, build{}
	r.mu.Unlock()
	return b
}

// messageFrame is an upper estimate of the bytes of a message without the row's own content.
const messageFrame = 1 << 10

// bytes estimates the size of a row's message without answers to earlier turns.
func (r *Runner) bytes(row *dispatch.Row) int {
	return messageFrame + r.w.Prompt.Bytes(&row.Due.Record) + row.Weight
}
