package analysis

import "replayd/internal/trace/prefix"

// recurring knows which ids come at the same place of more than one row: what AIPerf calls a row's context. Nearly every id
// has one place, so that one stands with the id's number, and only further ones need a map.
type recurring struct {
	first []placed // by the id's number
	more  map[rowPlace]bool
}

type placed struct {
	at    uint32 // from 1
	again bool
}

// A rowPlace is a block of a row, from 1, with the number of its id.
type rowPlace struct{ at, number uint32 }

func newRecurring() *recurring { return &recurring{more: map[rowPlace]bool{}} }

// add takes a row's blocks, each from its number on.
func (r *recurring) add(row []prefix.Step) {
	for i, s := range row {
		at := uint32(i) + 1
		for int(s.Number) >= len(r.first) {
			r.first = prefix.Push(r.first, placed{})
		}
		switch p := &r.first[s.Number]; p.at {
		case 0:
			p.at = at
		case at:
			p.again = true
		default:
			_, came := r.more[rowPlace{at, s.Number}]
			r.more[rowPlace{at, s.Number}] = came
		}
	}
}

// tokens returns how many of a row's tokens lie in blocks that recur at their place. All rows were added before.
func (r *recurring) tokens(known *prefix.Numbers, blocks []uint64, tokens, size int) (n int) {
	for i, id := range blocks {
		number, _ := known.Find(id)
		at := uint32(i) + 1
		again := r.first[number].again
		if r.first[number].at != at {
			again = r.more[rowPlace{at, number}]
		}
		if again {
			n += min(tokens, size)
		}
		tokens -= size
	}
	return n
}
