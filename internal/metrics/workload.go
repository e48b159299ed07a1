package metrics

import (
	"cmp"
	"sync"
	"time"
	"unicode/utf8"

	"replayd/internal/bounded"
	"replayd/internal/limits"
	"replayd/internal/measure"

	"github.com/prometheus/client_golang/prometheus"
)

// exemplarLabel is the exemplar label with the X-Request-Id.
const exemplarLabel = "request_id"

// A Workload counts the requests of one workload. Each request takes one of three ways: Expected and Dropped; Expected,
// Sent and Finished; or Filtered alone. A Workload is safe for concurrent use.
type Workload struct {
	options  WorkloadOptions
	guard    [limits.NumLimits]bool // limits that this workload has open; guarded by mu
	removed  bool                   // guarded by Meter.mu
	overflow *bounded.Overflow

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
	w.move(int64(n), closed, waiting, func(c *counts) { c.expected += int64(n) })
}

// Sent moves a request that a lane has taken from waiting to in flight.
func (w *Workload) Sent() { w.move(1, waiting, inFlight, func(*counts) {}) }

// Unsent moves a request that its lane could not send from in flight back to waiting. Dropped follows.
func (w *Workload) Unsent() { w.move(1, inFlight, waiting, func(*counts) {}) }

// Dropped counts a waiting request that will not be sent. It panics on Filtered, since a filtered row was never
// expected and has its own method, and on an unknown reason.
func (w *Workload) Dropped(why measure.DropReason) {
	i := indexOf(allDropReasons, why)
	if why == measure.Filtered {
		panic("metrics: a filtered row was never expected: count it with Filtered")
	}
	w.move(1, waiting, closed, func(c *counts) {
		c.dropped[i]++
		if why.Eligible(w.options.Sheds) {
			c.eligible++
		}
	})
}

// Filtered counts n rows that the workload leaves out, which are not expected.
func (w *Workload) Filtered(n int) {
	w.change(func(c *counts) { c.dropped[indexOf(allDropReasons, measure.Filtered)] += int64(n) })
}

// LoopStarted records the number of the loop that begins, the time until the next one, and the share of that without rows;
// NaN: that is not known.
func (w *Workload) LoopStarted(number int64, every time.Duration, idle float64) {
	w.change(func(c *counts) { c.playback.loop, c.playback.every, c.playback.idle = number, every, idle })
}

// LoopCompleted counts a completed loop.
func (w *Workload) LoopCompleted() { w.change(func(c *counts) { c.loopsDone++ }) }

// ActivationsSkipped counts n activations that began no loop.
func (w *Workload) ActivationsSkipped(n int) { w.change(func(c *counts) { c.skipped += int64(n) }) }

// LoopsSkipped counts n loops that were left out.
func (w *Workload) LoopsSkipped(n int64) { w.change(func(c *counts) { c.loopsLeft += n }) }

// Paused records whether the workload is paused.
func (w *Workload) Paused(paused bool) { w.change(func(c *counts) { c.playback.paused = paused }) }

// Fault records whether a fault stops the workload. If two workloads share a series, the later one's fault is shown.
func (w *Workload) Fault(fault bool) { w.changeLatest(func(c *counts) { c.fault = fault }) }

// Stuck records whether the workload stands still. If two workloads share a series, it is that of the later one.
func (w *Workload) Stuck(stuck bool) { w.changeLatest(func(c *counts) { c.stuck = stuck }) }

// changeLatest changes the counts of the current model, unless they are of a later workload.
func (w *Workload) changeLatest(f func(c *counts)) {
	w.change(func(c *counts) {
		if c.latest == w {
			f(c)
		}
	})
}

// Plays records the trace that is played.
func (w *Workload) Plays(t TraceInfo) { w.change(func(c *counts) { c.playback.trace = t.valid() }) }

// Guard records whether a limit of the guard is open. The series is 1 while any workload that counts in it has the
// limit open; Remove closes the limits of a workload.
func (w *Workload) Guard(i limits.Limit, open bool) {
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

// SetClock sets the function that returns the position in the trace, the wall clock − the loop's own time, and when the next
// request is due, zero if that is unknown. It is called at each scrape, without a lock held, until the workload is removed.
// It must not wait.
func (w *Workload) SetClock(f func() (position, skew time.Duration, due time.Time)) {
	w.change(func(c *counts) { c.playback.clock = f })
}

// Finished moves a request out of flight and counts its result. It keeps no reference to r. It panics on an unknown
// outcome.
func (w *Workload) Finished(r *measure.Request) {
	outcome := indexOf(allOutcomes, r.Outcome)
	v := r.Values()
	broken := w.options.SLO.Violations(r.Outcome, &v)
	good, judged := w.options.SLO.Good(r.Outcome, &v)
	now, counted, known := time.Now(), true, true
	s := w.move(1, inFlight, closed, func(c *counts) {
		c.finished[outcome]++
		switch {
		case !judged:
			c.unjudged++
		case r.Outcome.Eligible():
			c.eligible++
		}
		if good {
			c.good++
		}
		counted = c.replicas.add(string(r.Replica), maxReplicas, outcome, now)
		known = c.models.add(r.Model, maxRequested, outcome, now)
		c.add(r, broken, w.options.FreeOutput)
	})
	if !counted {
		w.overflow.Add(bounded.ReplicaName, 1)
	}
	if !known {
		w.overflow.Add(bounded.RequestedModel, 1)
	}
	s.observeSent(r)
	if r.Outcome == measure.OK {
		s.observeLatencies(r)
	}
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
	if r.Status/100 == 2 {
		c.finishes[cmp.Or(r.Finish, measure.NoFinish)]++
	}
	c.unread += int64(r.Unread)
	for i, b := range broken {
		if b {
			c.violations[i]++
		}
	}
	if r.Outcome != measure.OK {
		return
	}
	u := r.Usage
	for i := range c.rules {
		if u.Rules&(1<<i) != 0 {
			c.rules[i]++
		}
	}
	for i, n := range [len(tokenKinds)]int{u.Prompt, u.Output, u.Cached, u.Reasoning} {
		c.tokens[i] += int64(n)
	}
	if u.Source == measure.UsageCounted || u.Source == measure.UsageText {
		c.withoutUsage++
	}
	if r.PromptLength().Other() {
		c.mismatch[0]++
	}
	if !freeOutput && r.AnswerLength().Other() {
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

// exemplar returns the exemplar labels of a request, or nil without an id. Names and values together may have 128 runes, or
// client_golang panics: a longer id loses its beginning, for its end has the loop and the row.
func exemplar(id string) prometheus.Labels {
	if id == "" {
		return nil
	}
	const most = prometheus.ExemplarMaxRunes - len(exemplarLabel)
	if !utf8.ValidString(id) || utf8.RuneCountInString(id) > most {
		runes := []rune(id)
		if len(runes) > most {
			runes = append([]rune("…"), runes[len(runes)-most+1:]...)
		}
		id = string(runes)
	}
	return prometheus.Labels{exemplarLabel: id}
}
