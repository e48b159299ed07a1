// Package terminal shows people how a run goes: progress, the wait for a target, failures. It writes on a screen, or to a log.
package terminal

import (
	"fmt"
	"io"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"replayd/internal/measure"
	"replayd/internal/stats"
)

// recent is over how many of the last requests the quantiles of a progress line go.
const recent = 512

// A line on a terminal is renewed every second. A log gets one every 10 s in the first minute and every minute then: that
// shows that a short run works and keeps the log of a long one short.
const (
	drawEvery = time.Second
	logEvery  = 10 * time.Second
	logSoon   = time.Minute
)

// Progress follows the latencies of finished requests and shows how it goes. The counts are the ledger's. Its methods may be called at once, but only one of Show, Log
// and Print.
type Progress struct {
	mu       sync.Mutex
	ttft     window
	tpot     window
	lateness window
	lastErr  string
	marks    []mark
}

// An Outlook is what a run knows of itself beside what has ended.
type Outlook struct {
	Requests int // how many there will be; 0: that is not known, or there is no end
	Ledger   measure.Ledger
	Length   time.Duration // from the first instant of the plan to its last row's; 0: not known, or there is no end
	Left     time.Duration // of Length; more than that before the plan begins
	Stopping bool          // nothing new is sent
}

// Observe takes a finished request, unless it was sent to warm the server up.
func (p *Progress) Observe(r *measure.Request) {
	if r.Phase == measure.Warmup {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.Sent() {
		p.lateness.add(r.Lateness())
	}
	if r.Outcome.Failed() {
		p.lastErr = string(r.Outcome) + ": " + r.Error
	}
	if r.Outcome != measure.OK {
		return
	}
	if d, ok := r.TTFT(); ok {
		p.ttft.add(d)
	}
	if d, ok := r.TPOT(); ok {
		p.tpot.add(d)
	}
}

// Show draws the progress at the foot of a terminal until done is closed. What it drew last stays there.
func (p *Progress) Show(s *Screen, outlook func() Outlook, done <-chan struct{}) {
	p.follow(outlook, done, func(o Outlook, elapsed time.Duration, ended bool) {
		s.Draw(p.view(elapsed, o, ended).lines(s.Width())...)
		if ended {
			s.End()
		}
	})
}

// Log writes the progress into a log until done is closed.
func (p *Progress) Log(log *slog.Logger, outlook func() Outlook, done <-chan struct{}) {
	next := logEvery
	p.follow(outlook, done, func(o Outlook, elapsed time.Duration, ended bool) {
		if elapsed < next || ended {
			return
		}
		log.Info("progress", p.view(elapsed, o, false).attributes()...)
		if next < logSoon {
			next += logEvery
		} else {
			next += logSoon
		}
	})
}

// Print writes the progress in lines, one below the other, until done is closed: the first one soon, because a person waits
// to see that it works.
func (p *Progress) Print(w io.Writer, outlook func() Outlook, done <-chan struct{}) {
	const first, every = 3 * time.Second, 5 * time.Second
	next := first
	p.follow(outlook, done, func(o Outlook, elapsed time.Duration, ended bool) {
		if elapsed < next || ended {
			return
		}
		fmt.Fprintln(w, p.view(elapsed, o, false).line(math.MaxInt))
		next = next.Truncate(every) + every
	})
}

// follow calls show at once, every second, and when done is closed.
func (p *Progress) follow(outlook func() Outlook, done <-chan struct{}, show func(o Outlook, elapsed time.Duration, ended bool)) {
	start := time.Now()
	tick := time.NewTicker(drawEvery)
	defer tick.Stop()
	for ended := false; ; {
		now, o := time.Now(), outlook()
		p.mark(now, o.Ledger.Finished())
		show(o, now.Sub(start), ended)
		if ended {
			return
		}
		select {
		case <-tick.C:
		case <-done:
			ended = true
		}
	}
}

// rateOver is the time over which the rate of a progress line is.
const rateOver = 10 * time.Second

// A mark is how many requests had finished at an instant.
type mark struct {
	at       time.Time
	finished int64
}

// mark notes how far it is, and forgets what is longer ago than the rate looks back.
func (p *Progress) mark(now time.Time, finished int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	old := 0
	for old < len(p.marks) && now.Sub(p.marks[old].at) > rateOver {
		old++
	}
	p.marks = append(slices.Delete(p.marks, 0, old), mark{now, finished})
}

// rate is how many requests finished per second between the marks; 0 with fewer than two.
func (p *Progress) rate() float64 {
	if len(p.marks) < 2 {
		return 0
	}
	first, last := p.marks[0], p.marks[len(p.marks)-1]
	return float64(last.finished-first.finished) / last.at.Sub(first.at).Seconds()
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

// percentile is 0 of nothing.
func (w *window) percentile(p float64) time.Duration {
	if len(w.values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(w.values))
	return time.Duration(stats.Percentile(p, int64(len(sorted)), func(rank int64) float64 { return float64(sorted[rank]) }))
}
