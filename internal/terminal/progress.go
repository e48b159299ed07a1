// Package terminal shows the state of a run: progress and the wait
// for a target. It writes to a terminal or a log.
package terminal

import (
	"fmt"
	"io"
	"log/slog"
	"math"
	"sync"
	"time"

	"replayd/internal/measure"
	"replayd/internal/number"
	"replayd/internal/stats"
)

// recent is the number of last requests that the percentiles of a progress line cover.
const recent = 512

// A line on a terminal is redrawn every second. A log gets a line every 10 s in the first minute and every minute after
// that: a short run shows that it works, and the log of a long run stays short.
const (
	drawEvery = time.Second
	logEvery  = 10 * time.Second
	logSoon   = time.Minute
)

// Progress tracks the latencies of finished requests and shows the progress of a run. The counts are the ledger's. Its
// methods are safe for concurrent use, but only one of Show, Log and Print may run.
type Progress struct {
	mu sync.Mutex
	observed
}

// What Progress has observed. A copy stays as it is: its slices only grow.
type observed struct {
	ttft, tpot, lateness window
	lastErr              string
	marks                []mark
}

// An Outlook is the state of a run that Progress does not observe itself.
type Outlook struct {
	Requests int // number of requests of the run; 0: unknown or endless
	Ledger   measure.Ledger
	Length   time.Duration // from the start of the plan to its last row; 0: unknown or endless
	Left     time.Duration // of Length; more than Length before the plan begins
	Stopping bool          // no new request is sent
}

// Observe takes a finished request. It ignores warm-up requests.
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
		p.lastErr = string(r.Outcome) + ": " + string(r.Error)
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

// Show draws the progress at the bottom of a terminal until done is closed. The last drawing stays.
func (p *Progress) Show(s *Screen, outlook func() Outlook, done <-chan struct{}) {
	p.follow(outlook, done, func(v view) {
		s.Draw(v.lines(s.Width())...)
		if v.ended {
			s.End()
		}
	})
}

// Log logs the progress until done is closed.
func (p *Progress) Log(log *slog.Logger, outlook func() Outlook, done <-chan struct{}) {
	next := logEvery
	p.follow(outlook, done, func(v view) {
		if v.elapsed < next || v.ended {
			return
		}
		log.Info("progress", v.attributes()...)
		if next < logSoon {
			next += logEvery
		} else {
			next += logSoon
		}
	})
}

// Print prints lines of progress until done is closed. The first line comes soon, because a person waits to see that
// the run works.
func (p *Progress) Print(w io.Writer, outlook func() Outlook, done <-chan struct{}) {
	const first, every = 3 * time.Second, 5 * time.Second
	next := first
	p.follow(outlook, done, func(v view) {
		if v.elapsed >= next && !v.ended {
			fmt.Fprintln(w, v.line(math.MaxInt))
			next = next.Truncate(every) + every
		}
	})
}

// follow calls show at once, every second, and when done is closed.
func (p *Progress) follow(outlook func() Outlook, done <-chan struct{}, show func(v view)) {
	start := time.Now()
	tick := time.Tick(drawEvery)
	for ended := false; ; {
		now, o := time.Now(), outlook()
		show(view{Outlook: o, observed: p.mark(now, o.Ledger.Finished()), elapsed: now.Sub(start), ended: ended})
		if ended {
			return
		}
		select {
		case <-tick:
		case <-done:
			ended = true
		}
	}
}

const rateOver = 10 * time.Second

type mark struct {
	at       time.Time
	finished int64
}

// mark records the number of finished requests, drops marks older than rateOver, and returns what was observed.
func (p *Progress) mark(now time.Time, finished int64) observed {
	p.mu.Lock()
	defer p.mu.Unlock()
	old := 0
	for old < len(p.marks) && now.Sub(p.marks[old].at) > rateOver {
		old++
	}
	p.marks = append(p.marks[old:], mark{now, finished})
	return p.observed
}

// rate returns finished requests per second between the first and the last mark; 0 with fewer than two marks.
func (o observed) rate() float64 {
	if len(o.marks) < 2 {
		return 0
	}
	first, last := o.marks[0], o.marks[len(o.marks)-1]
	return float64(last.finished-first.finished) / last.at.Sub(first.at).Seconds()
}

type window []time.Duration

func (w *window) add(d time.Duration) { *w = append((*w)[max(0, len(*w)-recent+1):], d) }

// percentile returns a percentile as a text; without values it has no meaning.
func (w window) percentile(p float64) string {
	return number.Latency(time.Duration(stats.PercentileOf(p, w)))
}
