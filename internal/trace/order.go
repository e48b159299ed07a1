package trace

import (
	"cmp"
	"slices"
)

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

// spots are rows in due order. With Window+1 of them, the first is due before every row still to come. If a later row
// were due before it, all Window+1 rows would stand before that one and be due after it, one more than disorder allows.
type spots []spot

// add adds a row. Most rows are due after nearly all others, so few have to move.
func (s *spots) add(p spot) {
	i, _ := slices.BinarySearchFunc(*s, p, func(a, b spot) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.number, b.number))
	})
	*s = slices.Insert(*s, i, p)
}
