package daemon

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"replayd/internal/canary"
	"replayd/internal/config"
	"replayd/internal/measure"
	"replayd/internal/replay"
	"replayd/internal/schedule"
)

// Compare configures a comparison: the rows of a workload go to its target, the baseline, and at the same instants to the candidate.
type Compare struct {
	Workload  string // its name
	Candidate string // name of a target
	canary.Options

	// Judged is called with the state every second and after the last request. Its argument is the caller's.
	Judged func(canary.Judgement)
}

// mirrored returns the name of the workload that sends the candidate's requests. No configured name has an @.
func (c *Compare) mirrored() string { return c.Workload + "@" + c.Candidate }

// A comparison collects what the runners of both sides report. They only append to events: blocks are judged on a goroutine of its own, so that no
// request waits for that.
type comparison struct {
	Compare
	twins  *replay.Twins
	closes time.Duration // from when on a row is not waited for
	equal  bool          // both sides get equal texts

	mu     sync.Mutex
	events []rowEvent

	pairing *canary.Pairing // these two belong to run
	verdict *canary.Comparison
}

// A rowEvent is a row that came due, or what became of a side's request.
type rowEvent struct {
	settled bool
	side    canary.Side
	id      string
	at      time.Time
	gap     time.Duration
	half    canary.Half
}

// closeAfter is how long after the total timeout a row is waited for.
const closeAfter = time.Minute

func newComparison(o Compare, total time.Duration, equal bool) *comparison {
	c := &comparison{Compare: o, twins: replay.NewTwins(), closes: total + closeAfter, equal: equal, verdict: canary.New(o.Options)}
	c.pairing = canary.NewPairing(c.verdict.Add)
	return c
}

// join makes a runner one of the comparison's sides.
func (c *comparison) join(w *replay.Workload, slo measure.SLO, of canary.Side) {
	w.Twins, w.Second = c.twins, of == canary.Candidate
	if c.equal {
		w.SaltName = c.Workload
	}
	w.Observers = append(w.Observers, sideObserver{c, of, slo})
	w.Due = func(d *schedule.Due) {
		gap := time.Duration(0)
		if d.Turn > 0 {
			gap = max(d.Delay, d.Gap)
		}
		c.report(rowEvent{id: d.ID(), at: d.At, gap: gap})
	}
	w.Unsent = func(d *schedule.Due, why measure.DropReason) {
		c.report(rowEvent{settled: true, side: of, id: d.ID(), half: canary.Half{Cause: causeOfDrop(why)}})
	}
}

// causeOfDrop says who is responsible for a request that was not sent.
func causeOfDrop(why measure.DropReason) canary.Cause {
	switch why {
	case measure.Overload, measure.Guarded, measure.SessionFailed:
		return canary.Server
	}
	return canary.Client
}

func (c *comparison) report(e rowEvent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, e)
}

// A sideObserver passes the requests of a side on.
type sideObserver struct {
	*comparison
	side canary.Side
	slo  measure.SLO
}

// Observe implements replay.Observer.
func (o sideObserver) Observe(r *measure.Request) {
	_, id, _ := strings.Cut(r.ID, "/") // the workload's name has none
	o.report(rowEvent{settled: true, side: o.side, id: id, half: halfOf(r, o.slo)})
}

// mostLate is the greatest share of a request's first latency that replayd may be late by itself.
const mostLate = 0.05

// halfOf returns what a finished request says of its side.
func halfOf(r *measure.Request, slo measure.SLO) canary.Half {
	t := &r.Timeline
	h := canary.Half{Ready: t.Ready, Request: canary.Request{Sent: t.Write, End: t.End}}
	values := r.Values()
	h.Bad = !slo.Good(r.Outcome, &values)
	if !r.Sent() { // there was no connection
		h.Sent = t.Ready
	}
	if r.Outcome == measure.OK {
		h.TTFT, _ = r.TTFT()
		h.TPOT, _ = r.TPOT()
		h.E2E, _ = r.E2E()
		if h.TTFT > 0 {
			h.First = t.Write.Add(h.TTFT)
		}
	}
	soonest := h.TTFT
	if soonest == 0 {
		soonest = h.E2E
	}
	switch {
	case r.Outcome == measure.Aborted:
		h.Cause = canary.Client
	case r.Outcome == measure.Cancelled: // as the workload wants, on both sides
		h.Bad = false
	case t.Waited: // the side's answers took so long that no lane was free
		h.Cause = canary.Server
	case soonest > 0 && float64(r.Lateness()) > mostLate*float64(soonest):
		h.Cause = canary.Client
	}
	return h
}

// run judges until ctx is done. Then it judges a last time what has been reported.
func (c *comparison) run(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			c.take()
			c.pairing.Close(now.Add(-c.closes))
			c.Judged(c.verdict.Judge())
		case <-ctx.Done():
			c.take()
			c.pairing.Close(time.Now().Add(time.Hour))
			c.Judged(c.verdict.Judge())
			return
		}
	}
}

// take passes the events on to the pairing.
func (c *comparison) take() {
	c.mu.Lock()
	events := c.events
	c.events = nil
	c.mu.Unlock()
	for _, e := range events {
		if e.settled {
			c.pairing.Settle(e.side, e.id, e.half)
		} else {
			c.pairing.Due(e.id, e.at, e.gap)
		}
	}
}

// withCandidate appends the workload that sends the candidate's requests.
func (g *Generation) withCandidate(workloads []config.Workload) []config.Workload {
	o := g.options.Compare
	if o == nil {
		return workloads
	}
	urls, total := map[string]string{}, time.Duration(0)
	for _, t := range g.options.Config.Targets {
		urls[t.Name] = t.URL
		total = max(total, time.Duration(t.Timeouts.Total))
	}
	for _, w := range workloads {
		if w.Name == o.Workload {
			// One server on both sides would find the texts of the one in its cache for the other.
			g.comparison = newComparison(*o, total, urls[w.Target] != urls[o.Candidate])
			w.Name, w.Target = o.mirrored(), o.Candidate
			return append(slices.Clone(workloads), w)
		}
	}
	return workloads
}
