package dispatch

// turns is a heap of session turns in their delay, by the instant at which they are ready.
type turns []*Row

func (t turns) front() *Row {
	if len(t) == 0 {
		return nil
	}
	return t[0]
}
func (t turns) Len() int { return len(t) }
func (t turns) Less(i, j int) bool {
	if !t[i].Ready.Equal(t[j].Ready) {
		return t[i].Ready.Before(t[j].Ready)
	}
	return t[i].Seq < t[j].Seq
}
func (t turns) Swap(i, j int) { t[i], t[j] = t[j], t[i] }

// Push and Pop are heap.Interface's.
func (t *turns) Push(x any) { *t = append(*t, x.(*Row)) }

func (t *turns) Pop() any {
	old := *t
	it := old[len(old)-1]
	old[len(old)-1] = nil
	*t = old[:len(old)-1]
	return it
}

// A fifo is a queue of items over one reused slice.
type fifo struct {
	items []*Row
	head  int
}

func (f *fifo) len() int { return len(f.items) - f.head }

func (f *fifo) front() *Row {
	if f.head == len(f.items) {
		return nil
	}
	return f.items[f.head]
}

func (f *fifo) back() *Row {
	if f.head == len(f.items) {
		return nil
	}
	return f.items[len(f.items)-1]
}

func (f *fifo) popBack() {
	f.items[len(f.items)-1] = nil
	f.items = f.items[:len(f.items)-1]
}

// skip removes items from the front while f returns true, and returns the first item that stays.
func (f *fifo) skip(over func(*Row) bool) *Row {
	for it := f.front(); it != nil; it = f.front() {
		if !over(it) {
			return it
		}
		f.pop()
	}
	return nil
}

func (f *fifo) push(it *Row) {
	if f.head > 64 && f.head*2 > len(f.items) {
		n := copy(f.items, f.items[f.head:])
		clear(f.items[n:])
		f.items, f.head = f.items[:n], 0
	}
	f.items = append(f.items, it)
}

func (f *fifo) pop() *Row {
	it := f.front()
	if it != nil {
		f.items[f.head] = nil
		f.head++
	}
	return it
}

// remove removes the item at an index, counted from the front.
func (f *fifo) remove(i int) {
	rest := f.items[f.head : f.head+i+1]
	copy(rest[1:], rest)
	rest[0] = nil
	f.head++
}

// all yields the rows from the front, with their indices.
func (f *fifo) all() []*Row { return f.items[f.head:] }
