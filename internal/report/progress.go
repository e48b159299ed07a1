// Package report shows people what was measured: while it happens and when it is over.
package report

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"replayd/internal/measure"
)

// recent is over how many of the last requests the quantiles of a progress line go.
const recent = 512

// Progress follows finished requests and tells in one line how it goes. Its methods may be called at once.
type Progress struct {
	mu       sync.Mutex
	ok       int
	failed   int
	dropped  int
	ttft     window
	tpot     window
	lateness window
	lastErr  string
}

// Observe takes a finished request.
func (p *Progress) Observe(r *measure.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.Sent() {
		p.lateness.add(r.Lateness())
	}
	if r.Outcome != measure.OK {
		p.failed++
		p.lastErr = string(r.Outcome) + ": " + r.Error
		return
	}
	p.ok++
	if d, ok := r.TTFT(); ok {
		p.ttft.add(d)
	}
	if d, ok := r.TPOT(); ok {
		p.tpot.add(d)
	}
}

// Drop takes a request that was due and not sent.
func (p *Progress) Drop(measure.DropReason) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dropped++
}

// Line is the state in words; requests is how many there will be, 0 when that is not known.
func (p *Progress) Line(elapsed time.Duration, requests int) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	done := fmt.Sprint(p.ok + p.failed + p.dropped)
	if requests > 0 {
		done += fmt.Sprintf(" of %d", requests)
	}
	line := fmt.Sprintf("%6s  %s done: %d ok, %d failed, %d dropped", elapsed.Round(time.Second), done, p.ok, p.failed, p.dropped)
	if len(p.ttft.values) > 0 {
		line += fmt.Sprintf("  TTFT p50 %s, p99 %s", short(p.ttft.quantile(0.5)), short(p.ttft.quantile(0.99)))
	}
	if len(p.tpot.values) > 0 {
		line += "  TPOT p50 " + short(p.tpot.quantile(0.5))
	}
	if len(p.lateness.values) > 0 {
		line += "  lateness p99 " + short(p.lateness.quantile(0.99))
	}
	if p.lastErr != "" {
		line += "  last error: " + p.lastErr
	}
	return line
}

// Control sequences of a terminal (ECMA-48; 7 is DEC's autowrap). A line too long for the terminal is cut, because the
// next one could not be written over what was wrapped. The cursor waits at the line's beginning, so that a log message
// that comes in between does not begin in its middle.
const (
	lineStart = "\x1b[?7l"
	lineEnd   = "\x1b[K\x1b[?7h\r"
	lineGone  = "\x1b[K"
)

// Show writes a line at each tick until done is closed: over itself on a terminal, one below the other elsewhere.
func (p *Progress) Show(w io.Writer, terminal bool, every time.Duration, requests int, done <-chan struct{}) {
	start := time.Now()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-done:
			if terminal {
				fmt.Fprint(w, lineGone)
			}
			return
		}
		line := p.Line(time.Since(start), requests)
		if terminal {
			fmt.Fprint(w, lineStart+line+lineEnd)
		} else {
			fmt.Fprintln(w, line)
		}
	}
}

// A window keeps the last values.
type window struct {
	values []time.Duration
	next   int
}

func (w *window) add(d time.Duration) {
	if len(w.values) < recent {
		w.values = append(w.values, d)
		return
	}
	w.values[w.next] = d
	w.next = (w.next + 1) % recent
}

// quantile is the nearest rank's value; 0 of nothing.
func (w *window) quantile(q float64) time.Duration {
	if len(w.values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(w.values))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// short writes a latency with three digits or so.
func short(d time.Duration) string {
	switch {
	case d >= time.Second:
		return fmt.Sprintf("%.2f s", d.Seconds())
	case d >= time.Millisecond:
		return fmt.Sprintf("%.1f ms", d.Seconds()*1e3)
	}
	return fmt.Sprintf("%d µs", d.Microseconds())
}
