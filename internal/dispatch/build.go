package dispatch

import "time"

// build hands the next row to the builder, if the builder is free.
func (d *Dispatcher) build(now time.Time) {
	if d.builder != nil || d.done {
		return
	}
	r := d.nextToBuild(now)
	if r == nil {
		return
	}
	if d.History && r.turn != nil {
		if t := r.turn.earlier(); t != nil {
			r.Answers = t.answers
		}
	}
	r.Reserved = r.size()
	d.bytes += r.Reserved
	r.building = true
	r.unlink(toBuild)
	d.builder = r
	d.do(Action{Kind: Build, Row: r})
}

// built takes a message from the builder. If the row was dropped meanwhile, the message is released at once.
func (d *Dispatcher) built(r *Row, m Message) {
	d.builder = nil
	r.building = false
	r.Message = m
	switch r.state {
	case gone:
		d.giveBack(r)
	case waiting:
		d.lineUp(r)
	}
}

// size estimates the bytes of a row's message.
func (r *Row) size() int {
	n := r.Size
	for _, answer := range r.Answers {
		n += len(answer)
	}
	return n
}

// nextToBuild returns the row whose message is needed soonest, or nil if none may be built now. The bound on bytes does not apply to
// the first row that waits for a free lane: one message can always be built, and rows due later do not delay a late turn of a session.
func (d *Dispatcher) nextToBuild(now time.Time) *Row {
	if r := d.waiting.first; d.free > 0 && r != nil && r.isUnbuilt() {
		return r
	}
	if d.bytes < d.Ahead {
		for _, r := range [...]*Row{d.called.first, d.delayed.front()} {
			if r != nil && r.isUnbuilt() {
				return r
			}
		}
	}
	// The first rows of the heap are those due soonest, in no order. Rows without parents of their own were built with unbuilt or behind.
	for _, r := range d.delayed.rows[:min(d.delayed.Len(), 15)] {
		if r.namesParents() && r.isUnbuilt() && r.Ready.Sub(now) <= aheadTime && d.fits(r, d.Ahead) {
			return r
		}
	}
	if r := d.unbuilt.first; r != nil && d.fits(r, d.Ahead) {
		return r
	}
	// Turns that wait for an earlier turn may take half of the bound, so that they do not starve the rows that can be sent.
	if r := d.behind.first; r != nil && d.fits(r, d.Ahead/2) {
		return r
	}
	return nil
}

// prebuild has the message of a row that comes after others built while the last of its parents is in flight, or when they have ended.
// After long waits that is left to the end of the wait, so that few messages are held.
func (d *Dispatcher) prebuild(r *Row) {
	t := r.turn
	switch soon := !r.namesParents() || max(t.after.Sub(r.Ready), r.Due.Since) <= aheadTime; {
	case r.late || !soon:
	case t.pending == 0:
		d.buildIn(&d.unbuilt, r)
	case t.apart == 0:
		d.buildIn(&d.behind, r)
	}
}

// buildIn queues a row without a message for the builder.
func (d *Dispatcher) buildIn(l *list, r *Row) {
	if r.isUnbuilt() {
		l.push(r)
	}
}

// prebuildNext has the messages of the rows built that only wait for r.
func (d *Dispatcher) prebuildNext(r *Row) {
	if r.turn == nil {
		return
	}
	d.freeNext(r.turn)
	for _, f := range r.turn.next {
		d.visits++
		if d.closed != nil || f.row.namesParents() && f.wait <= aheadTime {
			d.prebuild(f.row)
		}
	}
}

func (r *Row) isUnbuilt() bool {
	return r.Message.Body == nil && r.Message.Err == nil && !r.building && !r.Filtered && r.state != gone && r.state != flying
}

func (d *Dispatcher) fits(r *Row, bound int) bool {
	return d.bytes == 0 || d.bytes+r.size() <= bound
}

func (d *Dispatcher) giveBack(r *Row) {
	if r.Reserved == 0 || r.building {
		return
	}
	d.bytes -= r.Reserved
	r.Reserved = 0
	d.do(Action{Kind: Release, Row: r})
}
