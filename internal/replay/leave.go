package replay

import (
	"container/heap"

	"replayd/internal/measure"
)

// drop ends an item that was due and is not sent.
func (q *queue) drop(it *item, reason measure.DropReason) {
	it.state = gone
	q.endTrial(it, false)
	q.purse.refund(it)
	q.count.Dropped(reason)
	q.dropped(it, reason)
	q.leave(it)
}

// endTrial lets there be another trial where an item was one that has ended, or was never sent.
func (q *queue) endTrial(it *item, sent bool) {
	if it.trial {
		q.guard.Tried(sent)
		it.trial = false
	}
}

// forget ends an item that never came due.
func (q *queue) forget(it *item) {
	it.state = gone
	q.weight -= it.weight
	q.forgotten(it)
	q.leave(it)
}

func (q *queue) leave(it *item) {
	it.loop.open--
	q.part(it)
	if it.loop.read && it.loop.open == 0 {
		q.emptied()
	}
}

// stop drops whatever was due and not sent; what was not due yet was never expected and goes silently.
func (q *queue) stop() {
	q.end()
	for it := q.waiting.pop(); it != nil; it = q.waiting.pop() {
		q.drop(it, measure.Shutdown)
	}
	for _, it := range q.delayed {
		q.drop(it, measure.Shutdown)
	}
	q.delayed = nil
	for _, l := range q.loops {
		for _, s := range l.sessions {
			turns := s.turns
			s.turns = nil
			for _, it := range turns {
				if it.state != gone {
					q.drop(it, measure.Shutdown)
				}
			}
		}
		l.read = true
	}
}

// end lets go silently of everything that is not due yet.
func (q *queue) end() {
	var undue []*item
	for _, list := range []*fifo{&q.upcoming, &q.called} {
		for it := list.pop(); it != nil; it = list.pop() {
			undue = append(undue, it)
		}
	}
	due := q.delayed[:0]
	for _, it := range q.delayed {
		if it.expected {
			due = append(due, it)
		} else {
			undue = append(undue, it)
		}
	}
	clear(q.delayed[len(due):])
	q.delayed = due
	heap.Init(&q.delayed)
	for _, l := range q.loops {
		for _, s := range l.sessions {
			for _, it := range s.turns {
				if it.state == blocked && !it.expected {
					undue = append(undue, it)
				}
			}
		}
	}
	for _, it := range undue {
		it.loop.cut = true
		q.forget(it)
	}
}
