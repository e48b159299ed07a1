package prefix

import "slices"

// Numbers maps ids to numbers. Ids that count from 0, as in Mooncake, are in a slice, which takes a tenth of a map's
// time. Ids that are hashes are in a map.
type Numbers struct {
	low  []uint32 // by id: its number + 1; 0: not here
	high map[uint64]uint32
	n    int
}

// Ids below lowest are always in the slice.
const lowest = 1 << 16

// Find returns the number of an id.
func (t *Numbers) Find(id uint64) (number uint32, ok bool) {
	if id < uint64(len(t.low)) && t.low[id] != 0 {
		return t.low[id] - 1, true
	}
	if len(t.high) == 0 {
		return 0, false
	}
	number, ok = t.high[id]
	return number, ok
}

// add adds a new id. The slice takes an id below four times the number of ids, so that it has at most about three empty
// places for each used one.
func (t *Numbers) add(id uint64, number uint32) {
	t.n++
	if id >= uint64(max(lowest, 4*t.n)) {
		if t.high == nil {
			t.high = map[uint64]uint32{}
		}
		t.high[id] = number
		return
	}
	if id >= uint64(len(t.low)) {
		t.low = slices.Grow(t.low, max(len(t.low), int(id)+1-len(t.low), 1024))
		t.low = t.low[:cap(t.low)]
	}
	t.low[id] = number + 1
}
