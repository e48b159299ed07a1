package metrics

import (
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"replayd/internal/measure"

	"github.com/prometheus/client_golang/prometheus"
)

// exemplarLabel is the exemplar label with the X-Request-Id.
const exemplarLabel = "request_id"

// A Workload counts the requests of one workload. Each request takes one of three ways: Expected and Dropped; Expected,
// Sent and Finished; or Filtered alone. A Workload is safe for concurrent use.
type Workload struct {
	options WorkloadOptions              // without the trace
	guard   [measure.NumGuardLimits]bool // limits that this workload has open; guarded by mu
	removed bool                         // guarded by Meter.mu

	mu    sync.Mutex // locked after Meter.mu and before series.mu
	parts []*part    // the last one is for the current model; changed with both locks held
}

// change changes the counts of the current model.
func (w *Workload) change(f func(c *counts)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now().change(f)
}

// Expected counts n requests that have come due. They wait for a lane or for the previous turn.
func (w *Workload) Expected(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.parts[len(w.parts)-1].waiting += int64(n)
	w.now().change(func(c *counts) {
		c.expected += int64(n)
		c.waiting += int64(n)
	})
}

// waits returns the earliest part with a waiting request, since requests leave the queue in about that order. The lock
// is held.
func (w *Workload) waits() *part {
	i := slices.IndexFunc(w.parts[:len(w.parts)-1], func(p *part) bool { return p.waiting > 0 })
	if i < 0 {
		i = len(w.parts) - 1
	}
	return w.parts[i]
}

// Sent moves a request that a lane has taken from waiting to in flight.
func (w *Workload) Sent() {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.waits()
	p.waiting--
	p.inFlight++
	p.s.change(func(c *counts) {
		c.waiting--
		c.inFlight++
	})
}

// Dropped counts a waiting request that will not be sent. It panics on Filtered, since a filtered row was never
// expected and has its own method, and on an unknown reason.
func (w *Workload) Dropped(why measure.DropReason) {
	i := placeOf(allDropReasons, why)
	if why == measure.Filtered {
		panic("measure: a filtered row was never expected: count it with Filtered")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.waits()
	p.waiting--
	p.s.change(func(c *counts) {
		c.waiting--
		c.dropped[i]++
		if why.Eligible(w.options.Sheds) {
			c.eligible++
		}
	})
}

// Filtered counts n rows over the configured length limits, which are not expected.
func (w *Workload) Filtered(n int) {
	w.change(func(c *counts) { c.dropped[placeOf(allDropReasons, measure.Filtered)] += int64(n) })
}

// LoopStarted records the number of the loop that begins, and the time until the next one.
func (w *Workload) LoopStarted(number int64, every time.Duration) {
	w.change(func(c *counts) { c.loop, c.loopDuration = number, every })
}

// LoopCompleted counts a completed loop.
func (w *Workload) LoopCompleted() { w.change(func(c *counts) { c.loopsDone++ }) }

// Paused records whether the workload is paused.
func (w *Workload) Paused(paused bool) { w.change(func(c *counts) { c.paused = paused }) }

// Fault records whether a fault stops the workload. If two workloads share a series, the later one's fault is shown.
func (w *Workload) Fault(fault bool) {
	w.change(func(c *counts) {
		if c.latest == w {
			c.fault = fault
		}
	})
}

// Plays records the trace that is played.
func (w *Workload) Plays(t TraceInfo) { w.change(func(c *counts) { c.trace = t.valid() }) }

// Guard records whether a limit of the guard is open. The series is 1 while any workload that counts in it has the
// limit open; Remove closes the limits of a workload. Guard panics on an unknown limit.
func (w *Workload) Guard(limit measure.GuardLimit, open bool) {
	i := placeOf(allGuardLimits, limit)
	w.change(func(c *counts) {
		switch {
		case open && !w.guard[i]:
			c.guard[i]++
		case !open && w.guard[i]:
			c.guard[i]--
		}
		w.guard[i] = open
	})
}

// SetClock sets the function that returns the position in the trace, and the wall clock − the loop's own time. It is
// called at each scrape, without a lock held, until the workload is removed.
func (w *Workload) SetClock(f func() (position, skew time.Duration)) {
	w.change(func(c *counts) { c.clock = f })
}

// Finished moves a request out of flight and counts its result. It keeps no reference to r. It panics on an unknown
// outcome.
func (w *Workload) Finished(r *measure.Request) {
	outcome := placeOf(allOutcomes, r.Outcome)
	v := r.Values()
	broken := w.options.SLO.Violations(r.Outcome, &v)
	s := w.lands()
	s.change(func(c *counts) {
		c.inFlight--
		c.finished[outcome]++
		if r.Outcome.Eligible() {
			c.eligible++
		}
		c.replicas.add(r.Replica)
		c.add(r, broken, w.options.FreeOutput)
	})
	s.observeSent(r)
	if r.Outcome == measure.OK {
		s.observeLatencies(r)
	}
}

// lands removes one request from the earliest part with a request in flight, and returns the series of the part.
func (w *Workload) lands() *series {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.parts[:len(w.parts)-1], func(p *part) bool { return p.inFlight > 0 })
	if i < 0 {
		i = len(w.parts) - 1
	}
	w.parts[i].inFlight--
	return w.parts[i].s
}

// add counts a finished request, except its outcome. Tokens and lengths are counted for ok requests only; the record of
// a failed request has its tokens.
func (c *counts) add(r *measure.Request, broken [measure.SLOKinds]bool, freeOutput bool) {
	c.merged += int64(r.Timeline.MergedReads)
	if r.Retried {
		c.retries++
	}
	if len(r.Timeline.Chunks) > 0 {
		c.source = [len(stampSources)]int64{0, 1}
		if r.Timeline.Kernel {
			c.source = [len(stampSources)]int64{1, 0}
		}
	}
	for i, b := range broken {
		if b {
			c.violations[i]++
		}
	}
	if r.Outcome != measure.OK {
		return
	}
	if broken == [measure.SLOKinds]bool{} {
		c.good++
	}
	u := r.Usage
	for i, n := range [len(tokenKinds)]int{u.Prompt, u.Output, u.Cached, u.Reasoning} {
		c.tokens[i] += int64(n)
	}
	if u.Source == measure.UsageCounted || u.Source == measure.UsageText { // not counted by the server, so do not compare it with the trace
		c.withoutUsage++
		return
	}
	if r.InputTokens > 0 && u.Prompt != r.InputTokens {
		c.mismatch[0]++
	}
	if !freeOutput && r.OutputTokens > 0 && u.Output != r.OutputTokens {
		c.mismatch[1]++
	}
}

// observeSent observes the values that every sent request has, whatever its outcome.
func (s *series) observeSent(r *measure.Request) {
	for _, d := range r.Timeline.ReadDelays {
		s.hists[histReadDelay].Observe(max(0, d).Seconds()) // two clocks, so slightly below 0 is possible
	}
	if !r.Sent() {
		return
	}
	s.hists[histLateness].Observe(r.Lateness().Seconds())
	s.hists[histLaneWait].Observe(r.LaneWait().Seconds())
	s.hists[histSessionWait].Observe(r.SessionWait().Seconds())
	if r.Timeline.Connect > 0 {
		s.hists[histConnect].Observe(r.Timeline.Connect.Seconds())
	}
}

func (s *series) observeLatencies(r *measure.Request) {
	who := exemplar(r.ID)
	observe := func(hist int, of func(*measure.Request) (time.Duration, bool)) {
		switch d, defined := of(r); {
		case !defined:
		case who == nil:
			s.hists[hist].Observe(d.Seconds())
		default:
			s.hists[hist].(prometheus.ExemplarObserver).ObserveWithExemplar(d.Seconds(), who)
		}
	}
	observe(histTTFT, (*measure.Request).TTFT)
	observe(histTTFAT, (*measure.Request).TTFAT)
	observe(histTTFTFromDue, (*measure.Request).TTFTFromDue)
	observe(histE2E, (*measure.Request).E2E)
	observe(histE2EFromDue, (*measure.Request).E2EFromDue)
	if tpot, ok := r.TPOT(); ok {
		s.hists[histTPOT].Observe(tpot.Seconds())
	}
	for gap := range r.ITL() {
		s.hists[histITL].Observe(gap.Seconds())
	}
}

// exemplar returns the exemplar labels of a request, or nil if client_golang would panic: names and values together may
// have 128 runes.
func exemplar(id string) prometheus.Labels {
	if id == "" || !utf8.ValidString(id) || utf8.RuneCountInString(exemplarLabel)+utf8.RuneCountInString(id) > prometheus.ExemplarMaxRunes {
		return nil
	}
	return prometheus.Labels{exemplarLabel: id}
}
