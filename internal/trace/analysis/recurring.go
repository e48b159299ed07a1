package analysis

import (
	"replayd/internal/trace/ids"
	"replayd/internal/trace/prefix"
)

// recurring finds the ids that occur at the same position of more than one row: AIPerf calls them a row's context.
// Nearly every id has one position. That position is stored by the id's number, and only further positions need a map.
type recurring struct {
	first []placed // by id number
	more  map[rowPlace]bool
}

type placed struct {
	at    uint32 // position in the row, from 1; 0: none
	again bool
}

// A rowPlace is a position in a row, from 1, and the number of the id there.
type rowPlace struct{ at, number uint32 }

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

// tokens returns how many of a row's tokens are in blocks whose id recurs at the same position. All rows must have been
// added.
func (r *recurring) tokens(known *ids.Table, blocks []uint64, tokens, size int) (n int) {
	for i, id := range blocks {
		number := known.Find(id)
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
