package dispatch

import "container/heap"

// A chain is a kind of list. A row is in at most one list of each chain.
type chain uint8

const (
	byState   chain = iota // the rows of a state
	toBuild                // the rows without a message
	inLine                 // the waiting rows that those behind them do not overtake
	ofSession              // the open rows of a session
	chains
)

type link struct {
	in            *list
	before, after *Row
}

// A list is a queue of rows that are linked to each other. Each operation takes the same time, however long the list is.
type list struct {
	chain       chain
	first, last *Row
	n           int
}

// after returns the row behind r; nil: r is the last.
func (l *list) after(r *Row) *Row { return r.links[l.chain].after }

// push adds a row to the end. A row that is in the list already stays where it is.
func (l *list) push(r *Row) {
	if r.links[l.chain].in == l {
		return
	}
	r.unlink(l.chain)
	r.links[l.chain] = link{in: l, before: l.last}
	if l.last == nil {
		l.first = r
	} else {
		l.last.links[l.chain].after = r
	}
	l.last = r
	l.n++
}

// pop removes and returns the first row; nil: there is none.
func (l *list) pop() *Row {
	r := l.first
	if r != nil {
		r.unlink(l.chain)
	}
	return r
}

// unlink removes the row from its list of a chain, if it is in one.
func (r *Row) unlink(c chain) {
	k := &r.links[c]
	l := k.in
	if l == nil {
		return
	}
	if k.before == nil {
		l.first = k.after
	} else {
		k.before.links[c].after = k.after
	}
	if k.after == nil {
		l.last = k.before
	} else {
		k.after.links[c].before = k.before
	}
	l.n--
	*k = link{}
}

// A rowHeap has its rows in the order of sooner. A row is in at most one heap.
type rowHeap struct {
	rows   []*Row
	sooner func(a, b *Row) bool
	visits *int
}

func (h *rowHeap) front() *Row {
	if len(h.rows) == 0 {
		return nil
	}
	return h.rows[0]
}

func (h *rowHeap) push(r *Row) {
	r.heap = h
	heap.Push(h, r)
}

func (h *rowHeap) remove(r *Row) {
	r.heap = nil
	heap.Remove(h, r.heapIndex)
}

// Len implements heap.Interface, as the methods below do.
func (h *rowHeap) Len() int { return len(h.rows) }

// Less looks at two rows.
func (h *rowHeap) Less(i, j int) bool {
	*h.visits++
	return h.sooner(h.rows[i], h.rows[j])
}

// Swap keeps the places of the rows.
func (h *rowHeap) Swap(i, j int) {
	h.rows[i], h.rows[j] = h.rows[j], h.rows[i]
	h.rows[i].heapIndex, h.rows[j].heapIndex = i, j
}

// Push adds a row to the end.
func (h *rowHeap) Push(x any) {
	r := x.(*Row)
	r.heapIndex = len(h.rows)
	h.rows = append(h.rows, r)
}

// Pop removes the last row.
func (h *rowHeap) Pop() any {
	last := len(h.rows) - 1
	r := h.rows[last]
	h.rows[last] = nil
	h.rows = h.rows[:last]
	return r
}

// readySooner is the order of rows in a delay.
func readySooner(a, b *Row) bool {
	if !a.Ready.Equal(b.Ready) {
		return a.Ready.Before(b.Ready)
	}
	return a.Seq < b.Seq
}

// cameSooner is the order in which rows began to wait for a lane.
func cameSooner(a, b *Row) bool { return a.order < b.order }

// to moves a row to another state, and out of the lists of the state before.
func (d *Dispatcher) to(r *Row, s state) {
	r.unlink(byState)
	r.unlink(inLine)
	if r.heap != nil {
		r.heap.remove(r)
	}
	if d.retired && r.state == called {
		d.Slots.called--
	}
	r.state = s
	switch s {
	case upcoming:
		d.upcoming.push(r)
	case blocked, delayed:
		if s == delayed {
			d.delayed.push(r)
		}
		if !r.expected {
			r.loop.undue.push(r)
		} else if s == blocked {
			d.blocked.push(r)
		}
	case called:
		d.called.push(r)
		if d.retired {
			d.Slots.called++
		}
	case waiting:
		d.waiting.push(r)
		d.order++
		r.order = d.order
		d.lineUp(r)
	case flying, gone:
		r.unlink(toBuild)
	}
}

// lineUp puts a waiting row among those that may be sent, or among those that the rows behind them wait for. Rows that could not be built
// ahead are overtaken, and no other rows: a prefix is still sent before the request that reuses it.
func (d *Dispatcher) lineUp(r *Row) {
	switch {
	case r.Message.Body != nil || r.Message.Err != nil:
		r.unlink(inLine)
		if r.heap == nil {
			d.sendable.push(r)
		}
	case !r.late && !r.namesParents():
		d.holding.push(r)
	}
}

// nextInLine returns the first waiting row that has a message or a build error and may overtake the rows before it; nil: there is none.
func (d *Dispatcher) nextInLine() *Row {
	r, first := d.sendable.front(), d.holding.first
	if r == nil || first != nil && first.order < r.order {
		return nil
	}
	return r
}
