package canary

import (
	"cmp"
	"encoding/binary"
	"slices"
	"time"
)

// courseBlocks bounds the latest blocks in which a change is looked for.
const courseBlocks = 240

// A course is the latest values of a latency.
type course []courseValue

// A courseValue is a value, as a cell of its interval, with its instant.
type courseValue struct{ cell, at int64 } // at: seconds since 1970

func (c *course) add(cell int, at int64) {
	*c = latest(*c, courseValue{int64(cell), at}, courseBlocks)
}

// latest appends a value, and drops the oldest one where there are as many as may be. Once there are, it allocates
// nothing.
func latest[T any](all []T, v T, most int) []T {
	if len(all) == most {
		all = slices.Delete(all, 0, 1)
	}
	return append(all, v)
}

// changed estimates when the level of the values changed: the instant that divides them into two parts of which the values of one exceed those of the
// other most often (A. N. Pettitt, A non-parametric approach to the change-point problem, Journal of the Royal Statistical Society C 28(2), 1979).
func (c course) changed() time.Time {
	sum, most, at := 0, -1, time.Time{}
	for i := range len(c) - 1 {
		for _, other := range c { // Σ of the signs of the i-th value against all others
			sum += cmp.Compare(c[i].cell, other.cell)
		}
		if u := max(sum, -sum); u > most {
			most, at = u, time.Unix(c[i+1].at, 0).UTC()
		}
	}
	return at
}

// packed has each value's cell, and its seconds after the one before.
func (c course) packed() []byte {
	var b []byte
	before := int64(0)
	for _, v := range c {
		b = binary.AppendVarint(binary.AppendUvarint(b, uint64(v.cell)), v.at-before)
		before = v.at
	}
	return b
}

// unpack is the reverse of packed. It returns false for other bytes.
func (c *course) unpack(b []byte) bool {
	at := int64(0)
	for len(b) > 0 && len(*c) < courseBlocks {
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
