package trace

// bits is a set of numbers from 0, in one bit each.
type bits []uint64

func (b *bits) set(n int) {
	for n/64 >= len(*b) {
		*b = append(*b, 0)
	}
	(*b)[n/64] |= 1 << (n % 64)
}

func (b bits) has(n int) bool { return n/64 < len(b) && b[n/64]>>(n%64)&1 == 1 }
