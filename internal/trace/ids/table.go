// Package ids numbers the ids of a trace: those of blocks, chats and sessions.
package ids

import (
	"hash/maphash"
	"math/bits"
)

// A Table numbers ids from 1, in the order in which they are added. It is a hash table with chains that grows by one chain with each
// id, so that it never copies itself. Ids that count from 0, as in Mooncake, are found without chains, in half the time. An id takes
// 16 bytes, and up to 12 more if it counts from 0. The zero value is empty.
type Table struct {
	all    Pages[entry] // by number; 0 is none
	chains Pages[uint32]
	low    []*[perPage]uint32 // by id: its number
	lows   int                // ids in low
}

// An entry is an id, as two words without padding, and the next one of its chain.
type entry struct{ low, high, next uint32 }

func (e *entry) id() uint64 { return uint64(e.high)<<32 | uint64(e.low) }

// Ids below lowest are always in low.
const lowest = 1 << 16

// Len returns how many numbers are in use.
func (t *Table) Len() int { return max(0, t.all.Len()-1) }

// ID returns the id with a number.
func (t *Table) ID(number uint32) uint64 { return t.all.At(number).id() }

// Find returns the number of an id; 0: it is not here.
func (t *Table) Find(id uint64) (number uint32) {
	if page := id / perPage; page < uint64(len(t.low)) && t.low[page] != nil {
		if number = t.low[page][id%perPage]; number != 0 {
			return number
		}
	}
	if t.chains.Len() == 0 {
		return 0
	}
	for number = *t.chains.At(t.chain(id)); number != 0; {
		e := t.all.At(number)
		if e.id() == id {
			return number
		}
		number = e.next
	}
	return 0
}

// Add returns the number of an id and whether it was here before.
func (t *Table) Add(id uint64) (number uint32, known bool) {
	if number = t.Find(id); number != 0 {
		return number, true
	}
	number = t.Skip()
	e := t.all.At(number)
	e.low, e.high = uint32(id), uint32(id>>32)
	if id < uint64(max(lowest, 4*t.lows)) { // of the places in low three are empty for each used one, at most
		t.lows++
		page := id / perPage
		for uint64(len(t.low)) <= page {
			t.low = append(t.low, nil)
		}
		if t.low[page] == nil {
			t.low[page] = new([perPage]uint32)
		}
		t.low[page][id%perPage] = number
		return number, false
	}
	t.split()
	head := t.chains.At(t.chain(id))
	e.next, *head = *head, number
	return number, false
}

// Skip uses up a number, which is then no id's.
func (t *Table) Skip() (number uint32) {
	if t.all.Len() == 0 {
		t.all.Push(entry{})
	}
	t.all.Push(entry{})
	return uint32(t.all.Len() - 1)
}

// chain returns the chain of an id: with n chains and half of them the largest power of 2 up to n, that is its hash modulo twice that,
// or modulo half where that chain is not there yet (W. Litwin, "Linear hashing", 1980).
func (t *Table) chain(id uint64) uint32 {
	n := uint32(t.chains.Len())
	at := uint32(Hash(id)) & (2*half(n) - 1)
	if at >= n {
		at &= half(n) - 1
	}
	return at
}

// split adds a chain and moves to it what belongs there from the one chain that can have it.
func (t *Table) split() {
	n := uint32(t.chains.Len())
	t.chains.Push(0)
	if n == 0 {
		return
	}
	from, to := t.chains.At(n-half(n)), t.chains.At(n)
	number := *from
	for *from = 0; number != 0; {
		e, head := t.all.At(number), from
		if uint32(Hash(e.id()))&(2*half(n)-1) == n {
			head = to
		}
		number, e.next, *head = e.next, *head, number
	}
}

// half returns the largest power of 2 up to n ≥ 1.
func half(n uint32) uint32 { return 1 << (bits.Len32(n) - 1) }

var seed = maphash.MakeSeed()

// Hash returns a hash of 64 bits with the key of this process. As the id of a text it stands for that text: among n texts two have the
// same one with a probability of n²/2⁶⁵, which for 10 million is 3 in a million.
func Hash[T comparable](v T) uint64 { return maphash.Comparable(seed, v) }
