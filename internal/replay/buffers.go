package replay

import (
	"sync"

	"replayd/internal/dispatch"
)

// A build is a message to build: the row and a buffer for the message.
type build struct {
	row *dispatch.Row
	buf []byte
}

// A builder has the message to build next, and the buffers of messages.
type builder struct {
	next    build     // a nil row: none
	wanted  sync.Cond // the goroutine that builds waits here for next
	buffers buffers
}

// buffers keeps message buffers for reuse.
type buffers struct {
	free  [][]byte
	bytes int
}

// get returns the smallest free buffer with a capacity of n bytes or more, or a new one.
func (b *buffers) get(n int) []byte {
	best := -1
	for i, f := range b.free {
		if cap(f) >= n && (best < 0 || cap(f) < cap(b.free[best])) {
			best = i
		}
	}
	if best < 0 {
		return make([]byte, 0, n)
	}
	f := b.free[best]
	last := len(b.free) - 1
	b.free[best], b.free[last] = b.free[last], nil
	b.free = b.free[:last]
	b.bytes -= cap(f)
	return f[:0]
}

// give keeps a buffer for reuse unless that would keep more than room bytes.
func (b *buffers) give(f []byte, room int) {
	if cap(f) == 0 || b.bytes+cap(f) > room {
		return
	}
	b.free = append(b.free, f)
	b.bytes += cap(f)
}
