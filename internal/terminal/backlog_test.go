package terminal

import (
	"bytes"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// A pipe is a writer that can hang or be closed.
type pipe struct {
	mu     sync.Mutex
	got    bytes.Buffer
	takes  int           // bytes until it is closed; negative: never closed
	hangs  time.Duration // duration of each write
	writes int
}

func (p *pipe) Write(b []byte) (int, error) {
	<-time.After(p.hangs)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writes++
	if p.takes < 0 {
		return p.got.Write(b)
	}
	n, _ := p.got.Write(b[:min(len(b), p.takes)])
	if p.takes -= n; n < len(b) {
		return n, syscall.EPIPE
	}
	return n, nil
}

// Of a text that is longer than the backlog the beginning is written, so that an error is never without a word. It counts as dropped.
func TestBacklogOfALongText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pipe{takes: -1}
		b := NewBacklog(p)
		done := make(chan struct{})
		go func() { b.Run(); close(done) }()
		text := "wrong: " + strings.Repeat("é", maxBacklog) + "\n"
		if n, err := b.Write([]byte(text)); n != len(text) || err != nil {
			t.Fatal(n, err)
		}
		b.Flush(time.Second)
		p.mu.Lock()
		defer p.mu.Unlock()
		if got := p.got.String(); !strings.HasPrefix(got, "wrong: ééé") || !strings.HasSuffix(got, "é…\n") ||
			len(got) > maxBacklog || b.Dropped() != 1 {
			t.Errorf("want the beginning, and one line dropped, got %d bytes, %d dropped", len(got), b.Dropped())
		}
		close(b.wake)
		<-done
	})
}

// No caller waits for a pipe that hangs. Lines that it does not
// take are counted; lines that it takes are whole and in order.
func TestBacklogOfAPipeThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pipe{takes: -1, hangs: time.Hour}
		b := NewBacklog(p)
		done := make(chan struct{})
		go func() { b.Run(); close(done) }()
		begin := time.Now()
		line := strings.Repeat("x", 1023) + "\n"
		for range 1000 {
			if n, err := b.Write([]byte(line)); n != len(line) || err != nil {
				t.Fatal(n, err)
			}
			synctest.Wait()
		}
		if took := time.Since(begin); took != 0 {
			t.Errorf("writing took %v", took)
		}
		const kept = 1 + maxBacklog/1024 // one line is being written
		if got := b.Dropped(); got != 1000-kept {
			t.Errorf("want %d lines dropped, got %d", 1000-kept, got)
		}
		b.Flush(time.Second)
		if took := time.Since(begin); took != time.Second {
			t.Errorf("want a flush to give up after 1s, got %v", took)
		}
		b.Flush(3 * time.Hour)
		if took := time.Since(begin); took != 2*time.Hour || p.got.String() != strings.Repeat(line, kept) {
			t.Errorf("want %d lines after 2 writes of an hour, got %d bytes after %v", kept, p.got.Len(), took)
		}
		b.Flush(0) // nothing is pending
		close(b.wake)
		<-done
	})
}

// Lines for a closed pipe are counted, including a line that is half written, and writing goes on.
func TestBacklogOfAPipeThatIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pipe{takes: 10}
		b := NewBacklog(p)
		done := make(chan struct{})
		go func() { b.Run(); close(done) }()
		for _, lines := range []string{"12345\n", "6789\n", "a\nb\n", "no end"} {
			_, _ = b.Write([]byte(lines))
			b.Flush(time.Second)
		}
		if got := b.Dropped(); p.got.String() != "12345\n6789" || got != 4 || p.writes != 4 {
			t.Errorf("want 4 lines dropped in 4 writes, got %d in %d, %q", got, p.writes, p.got.String())
		}
		close(b.wake)
		<-done
	})
}
