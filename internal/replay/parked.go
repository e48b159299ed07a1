package replay

import "time"

// A line is the requests that wait for a lane, in order of ready. The first ones are whole items. Those behind them may be
// very many, where lanes are too few for long, and wait parked: as some tens of bytes, from which the item is made anew when
// the line has come to it.
type line struct {
	fifo
	parked parked
	near   int // most first ones; 0: all are
}

// nearRows is how many requests that wait are whole at least, if there are so many. Messages are built for more of them
// than that where the budget of bytes allows it: what has a message, or may have one, is never parked.
const nearRows = 256

func (l *line) len() int { return l.fifo.len() + l.parked.n }

// since is from when the first of the line has waited.
func (l *line) since() (ready time.Time, ok bool) {
	if it := l.front(); it != nil {
		return it.ready, true
	}
	return l.parked.since()
}

// pop takes the first of the line out of it, to be dropped: of a parked one the blocks are left out.
func (l *line) pop() *item {
	if it := l.fifo.pop(); it != nil {
		return it
	}
	return l.parked.take(false)
}

// wait puts an item at the end of the line.
func (q *queue) wait(it *item) {
	w := &q.waiting
	switch {
	case w.near == 0 || w.parked.n == 0 && w.fifo.len() < w.near:
		w.push(it)
	case !w.parked.add(it):
		w.parked.addWhole(it)
	default:
		it.state = replaced
		q.replaced++
		if q.replaced > nearRows && 2*q.replaced > q.building.len()+q.behind.len() {
			q.building.keep((*item).unbuilt)
			q.behind.keep((*item).unbuilt)
			q.replaced = 0
		}
	}
}

// approach makes the first parked request whole. Its message is the next to be built.
func (q *queue) approach() {
	it := q.waiting.parked.take(true)
	if it == nil {
		return
	}
	if q.named != nil {
		it.id = q.named(&it.due)
	}
	q.waiting.push(it)
	if it.unbuilt() && !it.late {
		q.building.pushFront(it)
	}
}

// first is the first item of the line; nil when none waits.
func (q *queue) first() *item {
	if q.waiting.fifo.len() == 0 {
		q.approach()
	}
	return q.waiting.front()
}

// takeBuilt removes the first item of the line whose message is there. It passes over those that could not be built ahead
// of their time, and over no others: a prefix still goes out before the request that reuses it.
func (q *queue) takeBuilt() *item {
	w := &q.waiting
	for i := 0; i < w.len(); i++ {
		if i == w.fifo.len() {
			q.approach()
		}
		it := w.items[w.head+i]
		if it.body != nil || it.err != nil {
			w.remove(i)
			if it.err == nil && q.ready != nil {
				it.err = q.ready()
			}
			return it
		}
		if !it.late {
			break
		}
	}
	return nil
}

// parked are items that wait, in order, folded into bytes.
type parked struct {
	folds   []*fold
	n       int
	scratch []byte // of one item
}

// foldBytes is how much a fold holds before another is begun, and foldSlack room for the last item. A fold is let go of when
// all of it was taken.
const (
	foldBytes = 32 << 10
	foldSlack = 256
)

// add folds an item; false: it has something that folds do not hold, such as a message.
func (p *parked) add(it *item) bool {
	if !it.foldable() {
		return false
	}
	f := p.last()
	if f == nil || f.loop != it.loop || f.of != it.due.Loop || !steps(f.base, it.ready) || len(f.code) >= foldBytes {
		next := &fold{loop: it.loop, of: it.due.Loop, base: it.ready}
		if f != nil && len(f.code) >= foldBytes {
			next.code = make([]byte, 0, foldBytes+foldSlack)
		}
		p.folds = append(p.folds, next)
		f = next
	}
	p.scratch = f.add(it, p.scratch)
	p.n++
	return true
}

// addWhole keeps an item as it is, in its place.
func (p *parked) addWhole(it *item) {
	f := p.last()
	if f == nil {
		f = &fold{loop: it.loop, of: it.due.Loop, base: it.ready}
		p.folds = append(p.folds, f)
	}
	f.code = append(f.code, 0)
	f.whole = append(f.whole, it)
	p.n++
}

func (p *parked) last() *fold {
	if len(p.folds) == 0 {
		return nil
	}
	return p.folds[len(p.folds)-1]
}

// since is when the first was ready.
func (p *parked) since() (ready time.Time, ok bool) {
	if p.n == 0 {
		return ready, false
	}
	return p.folds[0].ready(), true
}

// take unfolds the first, with its row's blocks or without; nil when there is none.
func (p *parked) take(blocks bool) *item {
	if p.n == 0 {
		return nil
	}
	f := p.folds[0]
	it := f.take(blocks)
	if p.n--; f.read == len(f.code) {
		p.folds[0] = nil
		p.folds = p.folds[1:]
	}
	return it
}
