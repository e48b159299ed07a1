package trace

import "container/heap"

// A peak is the latest instant of the rows so far, and the line that has it.
type peak struct {
	at   int64
	line int
}

// disorder finds rows that stand more than Window rows behind their place in due order.
type disorder struct {
	latest peak
	behind [Window + 1]peak // ring buffer: latest after each of the last Window+1 rows
	rows   int
}

// add reports whether a row more than Window rows before this one is due later, and returns that row's peak.
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

// A spot is the position of a row in the file and in due order.
type spot struct {
	at     int64
	number int
	line   int
	start  int64 // offset of the first byte
	bytes  int
}

// spots is a heap with the row due first on top. With Window+1 rows in the heap, the top is due before every row still
// to come. If a later row were due before the top, all Window+1 rows of the heap would stand before it and be due after
// it, one more than disorder allows.
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
