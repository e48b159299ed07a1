package canary

import (
	"encoding/binary"
	"math"
	"time"
)

// courseBlocks bounds the latest blocks in which a change is looked for.
const courseBlocks = 240

// A course is the latest values of a latency, as cells of its interval, with their instants.
type course struct {
	cells [courseBlocks]int64
	at    [courseBlocks]int64 // seconds since 1970
	all   int64
}

func (c *course) add(cell int, at int64) {
	place := c.all % courseBlocks
	c.cells[place], c.at[place] = int64(cell), at
	c.all++
}

// length is the number of values that are kept, and place where the i-th of them is.
func (c *course) length() int64 { return min(c.all, courseBlocks) }

func (c *course) place(i int64) int64 { return (c.all - c.length() + i) % courseBlocks }

// changed estimates when the level of the values changed: the instant that divides them into two parts of which the values of one exceed those of the
// other most often (A. N. Pettitt, A non-parametric approach to the change-point problem, Journal of the Royal Statistical Society C 28(2), 1979).
func (c *course) changed() time.Time {
	n := c.length()
	sum, most, at := 0, -1, time.Time{}
	for i := range n - 1 {
		for j := range n { // Σ of the signs of the i-th value against all others
			switch d := c.cells[c.place(i)] - c.cells[c.place(j)]; {
			case d > 0:
				sum++
			case d < 0:
				sum--
			}
		}
		if u := int(math.Abs(float64(sum))); u > most {
			most, at = u, time.Unix(c.at[c.place(i+1)], 0).UTC()
		}
	}
	return at
}

// packed has each value's cell, and its seconds after the one before.
func (c *course) packed() []byte {
	var b []byte
	before := int64(0)
	for i := range c.length() {
		at := c.at[c.place(i)]
		b = binary.AppendVarint(binary.AppendUvarint(b, uint64(c.cells[c.place(i)])), at-before)
		before = at
	}
	return b
}

// unpack is the reverse of packed. It returns false for other bytes.
func (c *course) unpack(b []byte) bool {
	at := int64(0)
	for len(b) > 0 && c.all < courseBlocks {
		cell, n := binary.Uvarint(b)
		if n <= 0 || cell > 2*cells {
			return false
		}
		after, m := binary.Varint(b[n:])
		if m <= 0 {
			return false
		}
		at += after
		c.add(int(cell), at)
		b = b[n+m:]
	}
	return len(b) == 0
}
