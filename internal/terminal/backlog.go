package terminal

import (
	"bytes"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// mostBacklog is how many bytes may wait for a file, beside those that are being written.
const mostBacklog = 256 << 10

// A Backlog takes lines for a file and writes them on a goroutine of its own. Nobody waits for the file: lines that it does not take
// in time, such as a pipe to a log collector that hangs, and those that it refuses, such as a pipe whose reader is gone, are
// dropped and counted. Its methods may be called at once.
type Backlog struct {
	file    io.Writer
	wake    chan struct{} // holds one: something waits
	dropped atomic.Uint64

	mu      sync.Mutex
	pending []byte
	busy    bool          // something is being written
	empty   chan struct{} // closed when nothing waits and nothing is being written; nil: not waited for
}

// NewBacklog makes a backlog for a file. Run writes it.
func NewBacklog(file io.Writer) *Backlog { return &Backlog{file: file, wake: make(chan struct{}, 1)} }

// Write implements io.Writer for whole lines. It never fails.
func (b *Backlog) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.pending)+len(p) > mostBacklog {
		b.drop(p)
		return len(p), nil
	}
	b.pending = append(b.pending, p...)
	select {
	case b.wake <- struct{}{}:
	default:
	}
	return len(p), nil
}

// Dropped is how many lines are not in the file, or not whole.
func (b *Backlog) Dropped() uint64 { return b.dropped.Load() }

func (b *Backlog) drop(lines []byte) {
	n := bytes.Count(lines, []byte{'\n'})
	if !bytes.HasSuffix(lines, []byte{'\n'}) {
		n++
	}
	b.dropped.Add(uint64(n))
}

// Run writes until the process ends.
func (b *Backlog) Run() {
	var batch []byte
	for range b.wake {
		b.mu.Lock()
		batch, b.pending = b.pending, batch[:0]
		b.busy = true
		b.mu.Unlock()
		if n, err := b.file.Write(batch); err != nil {
			b.drop(batch[n:])
		}
		b.mu.Lock()
		b.busy = false
		if len(b.pending) == 0 && b.empty != nil {
			close(b.empty)
			b.empty = nil
		}
		b.mu.Unlock()
	}
}

// Flush waits until the file has all lines, for a time at most.
func (b *Backlog) Flush(most time.Duration) {
	b.mu.Lock()
	if len(b.pending) == 0 && !b.busy {
		b.mu.Unlock()
		return
	}
	if b.empty == nil {
		b.empty = make(chan struct{})
	}
	empty := b.empty
	b.mu.Unlock()
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-empty:
	case <-timer.C:
	}
}
