package replay

import "slices"

// turns is a heap of session turns whose delay runs, the soonest first.
type turns []*item

func (t turns) front() *item {
	if len(t) == 0 {
		return nil
	}
	return t[0]
}
func (t turns) Len() int { return len(t) }
func (t turns) Less(i, j int) bool {
	if !t[i].ready.Equal(t[j].ready) {
		return t[i].ready.Before(t[j].ready)
	}
	return t[i].seq < t[j].seq
}
func (t turns) Swap(i, j int) { t[i], t[j] = t[j], t[i] }

// Push and Pop are heap.Interface's.
func (t *turns) Push(x any) { *t = append(*t, x.(*item)) }

func (t *turns) Pop() any {
	old := *t
	it := old[len(old)-1]
	old[len(old)-1] = nil
	*t = old[:len(old)-1]
	return it
}

// A fifo is a queue of items over one reused slice.
type fifo struct {
	items []*item
	head  int
}

func (f *fifo) len() int { return len(f.items) - f.head }

func (f *fifo) front() *item {
	if f.head == len(f.items) {
		return nil
	}
	return f.items[f.head]
}

func (f *fifo) back() *item {
	if f.head == len(f.items) {
		return nil
	}
	return f.items[len(f.items)-1]
}

func (f *fifo) popBack() {
	f.items[len(f.items)-1] = nil
	f.items = f.items[:len(f.items)-1]
}

// skip drops items from the front as long as f says so, and gives the first that stays.
func (f *fifo) skip(over func(*item) bool) *item {
	for it := f.front(); it != nil; it = f.front() {
		if !over(it) {
			return it
		}
		f.pop()
	}
	return nil
}

func (f *fifo) push(it *item) {
	if f.head > 64 && f.head*2 > len(f.items) {
		n := copy(f.items, f.items[f.head:])
		clear(f.items[n:])
		f.items, f.head = f.items[:n], 0
	}
	f.items = append(f.items, it)
}

func (f *fifo) pop() *item {
	it := f.front()
	if it != nil {
		f.items[f.head] = nil
		f.head++
	}
	return it
}

// pushFront puts an item before all others.
func (f *fifo) pushFront(it *item) {
	if f.head > 0 {
		f.head--
		f.items[f.head] = it
		return
	}
	f.items = slices.Insert(f.items, 0, it)
}

// keep drops all items that f does not want.
func (f *fifo) keep(wanted func(*item) bool) {
	f.items = slices.DeleteFunc(f.items, func(it *item) bool { return it == nil || !wanted(it) })
	f.head = 0
}

// remove takes out the item at a place, counted from the front.
func (f *fifo) remove(i int) {
	rest := f.items[f.head : f.head+i+1]
	copy(rest[1:], rest)
	rest[0] = nil
	f.head++
}
