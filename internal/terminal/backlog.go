package terminal

import (
	"bytes"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// maxBacklog is the most bytes that may wait for a file, without those being written.
const maxBacklog = 256 << 10

// longText is how many bytes are written of a text that is longer than the backlog.
const longText = 16 << 10

// A Backlog takes lines for a file and writes them in a goroutine of its own, so that no caller waits for the file. It
// drops and counts lines that the file does not take in time (a pipe to a log collector that hangs) or refuses (a pipe
// whose reader is gone). It is safe for concurrent use.
type Backlog struct {
	file    io.Writer
	wake    chan struct{} // holds one token while bytes are pending
	dropped atomic.Uint64

	mu      sync.Mutex
	pending []byte
	busy    bool          // a write is in progress
	empty   chan struct{} // closed when nothing is pending or being written; nil: nobody waits
}

// NewBacklog returns a Backlog for a file. Run writes the lines.
func NewBacklog(file io.Writer) *Backlog { return &Backlog{file: file, wake: make(chan struct{}, 1)} }

// Write implements io.Writer for whole lines. It never fails. Of a text that is longer than the backlog it keeps the beginning.
func (b *Backlog) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	kept := p
	if len(p) > maxBacklog {
		kept = append(bytes.ToValidUTF8(p[:longText], nil), "…\n"...)
	}
	if len(b.pending)+len(kept) > maxBacklog {
		b.drop(p)
		return len(p), nil
	}
	if len(kept) < len(p) {
		b.dropped.Add(1)
	}
	b.pending = append(b.pending, kept...)
	select {
	case b.wake <- struct{}{}:
	default:
	}
	return len(p), nil
}

// Dropped returns the number of lines that are missing in the file or incomplete.
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

// Flush waits until the file has all lines, but no longer than most.
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
	select {
	case <-empty:
	case <-time.After(most):
	}
}
