package replay

import (
	"context"
	"time"
)

// build makes messages ahead of their instants, in plan order, within the budget of bytes.
func (r *Runner) build(hard context.Context) {
	var prompt []byte // reused between messages
	for {
		r.mu.Lock()
		it := r.nextToBuild()
		for it == nil && !r.done {
			r.changed.Wait()
			it = r.nextToBuild()
		}
		if it == nil {
			r.mu.Unlock()
			return
		}
		if r.w.Carry && it.session != nil {
			it.answers = it.session.answers
		}
		it.size = r.bytes(it)
		r.held += it.size
		it.building = true
		buf := r.buffers.take(it.size)
		r.mu.Unlock()

		m := r.message(it, buf, prompt)
		prompt = m.prompt

		seen := r.look()
		r.mu.Lock()
		it.body, it.cut, it.counted, it.err = m.body, m.cut, m.counted, m.err
		it.building = false
		now := time.Now()
		r.judge(now, seen)
		if it.state == gone { // dropped meanwhile
			r.giveBack(it)
		} else {
			r.dispatch(hard, now)
			r.rouse()
		}
		r.mu.Unlock()
	}
}

// messageFrame is a generous size of everything in a message but what the row brings.
const messageFrame = 1 << 10

// bytes is about what an item's message will take.
func (r *Runner) bytes(it *item) int {
	n := messageFrame + r.w.Prompt.Bytes(&it.due.Record) + it.weight
	for _, answer := range it.answers {
		n += len(answer)
	}
	return n
}

// nextToBuild picks the item whose message is wanted soonest, with the lock held; nil when none may be built now.
// An item that waits for nothing but its message is built whatever the budget says: so one message is always let
// through, and a session's late turn is not held up by rows that are due after it.
func (r *Runner) nextToBuild() *item {
	q := &r.queue
	if q.free > 0 {
		if it := q.first(); it != nil && it.unbuilt() {
			return it
		}
	}
	if it := q.called.front(); it != nil && it.unbuilt() && r.held < r.w.Ahead {
		return it
	}
	if it := q.delayed.front(); it != nil && it.unbuilt() && r.held < r.w.Ahead {
		return it
	}
	it := q.building.skip((*item).settled)
	for q.waiting.parked.n > 0 && (it == nil || it.state != waiting) { // what waits comes before what is not due
		last := q.waiting.back()
		if r.held > 0 && r.held >= r.w.Ahead || last != nil && last.late && q.waiting.fifo.len() >= q.waiting.near {
			return nil // of turns that are not built ahead no more are made whole than are kept so
		}
		q.approach()
		it = q.building.skip((*item).settled)
	}
	if it != nil && r.fits(it, r.w.Ahead) {
		return q.building.pop()
	}
	// Turns that wait for an earlier one may take half of the budget: they must not starve the rows that can go.
	if it := q.behind.skip((*item).settled); it != nil && r.fits(it, r.w.Ahead/2) {
		return q.behind.pop()
	}
	return nil
}

// unbuilt says of an item whether its message is still to be made.
func (it *item) unbuilt() bool {
	return it.body == nil && it.err == nil && it.state != gone && it.state != flying && it.state != replaced
}

func (it *item) settled() bool { return !it.unbuilt() }

func (r *Runner) fits(it *item, budget int) bool {
	return r.held == 0 || r.held+r.bytes(it) <= budget
}

// giveBack returns the bytes of an item's message to the budget, with the lock held.
func (r *Runner) giveBack(it *item) {
	if it.size == 0 || it.building {
		return
	}
	r.held -= it.size
	it.size = 0
	r.buffers.give(it.body, r.w.Ahead-r.held)
	it.body = nil
}

// buffers keeps message buffers for reuse.
type buffers struct {
	free  [][]byte
	bytes int
}

// take gives the smallest free buffer with room for n bytes, or a new one.
func (b *buffers) take(n int) []byte {
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

// give keeps a buffer unless more bytes than room would be kept.
func (b *buffers) give(f []byte, room int) {
	if cap(f) == 0 || b.bytes+cap(f) > room {
		return
	}
	b.free = append(b.free, f)
	b.bytes += cap(f)
}
