package trace

import "container/heap"

// A peak is the latest instant up to some row, and the line that has it.
type peak struct {
	at   int64
	line int
}

// disorder finds rows that stand more than Window rows behind their place in due order.
type disorder struct {
	latest peak
	behind [Window + 1]peak // latest as it was after each of the last rows, in a ring
	rows   int
}

// add returns the line that is ahead of this one's time by more than Window rows, if there is one.
func (d *disorder) add(at int64, line int) (ahead peak, far bool) {
	slot := &d.behind[d.rows%len(d.behind)]
	ahead, far = *slot, d.rows >= len(d.behind) && slot.at > at
	if d.rows == 0 || at > d.latest.at {
		d.latest = peak{at, line}
	}
	*slot = d.latest
	d.rows++
	return ahead, far
}

// A spot is where a row stands in the file and in due order.
type spot struct {
	at     int64
	number int
	line   int
	start  int64 // first byte
	bytes  int
}

// spots is a heap, the row due first on top. With Window+1 rows in it, its top is due before all rows still to come:
// one of those that is due earlier would have the whole heap as later rows ahead of it, one more than disorder allows.
type spots []spot

func (s spots) Len() int { return len(s) }
func (s spots) Less(i, j int) bool {
	return s[i].at < s[j].at || s[i].at == s[j].at && s[i].number < s[j].number
}
func (s spots) Swap(i, j int) { s[i], s[j] = s[j], s[i] }
func (s *spots) Push(x any)   { *s = append(*s, x.(spot)) }
func (s *spots) Pop() any {
	old := *s
	last := old[len(old)-1]
	*s = old[:len(old)-1]
	return last
}

func (s *spots) add(p spot) { heap.Push(s, p) }
func (s *spots) pop() spot  { return heap.Pop(s).(spot) }
