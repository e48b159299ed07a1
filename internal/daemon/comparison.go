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

	// Judged is called with the state every second and after the last request, by one goroutine.
	Judged func(canary.Judgement)
}

// mirrored returns the name of the workload that sends the candidate's requests. No configured name has an @.
func (c *Compare) mirrored() string { return c.Workload + "@" + c.Candidate }

// A comparison collects the rows and requests of both sides. Their runners only append to events. The goroutine of run judges blocks, so that no request
// waits for that.
type comparison struct {
	Compare
	sides *replay.Sides
	equal bool // both sides get equal texts

	mu     sync.Mutex
	events []rowEvent

	pairing *canary.Pairing // these two belong to run
	verdict *canary.Comparison
}

// A rowEvent says that a row came due on a side, or how the side's request of the row ended. It is made between a due instant and the write of the
// request, so it only points to the row.
type rowEvent struct {
	side    canary.Side
	due     *schedule.Due // nil: the request id has ended
	id      string        // of the row; "": due has it
	half    canary.Half
	settled bool
}

// beginsWithin is how long a row waits for a side that has not said that it came due there.
const beginsWithin = time.Minute

func newComparison(o Compare, equal bool) *comparison {
	c := &comparison{Compare: o, sides: replay.NewSides(), equal: equal, verdict: canary.New(o.Options)}
	c.pairing = canary.NewPairing(c.verdict.Add)
	return c
}

// join makes a runner one of the comparison's sides.
func (c *comparison) join(w *replay.Workload, slo measure.SLO, of canary.Side) {
	w.Sides, w.Candidate = c.sides, of == canary.Candidate
	if c.equal {
		w.SaltName = c.Workload
	}
	w.Observers = append(w.Observers, sideObserver{c, of, slo})
	w.Due = func(d *schedule.Due) { c.report(rowEvent{side: of, due: d}) }
	w.Unsent = func(d *schedule.Due, why measure.DropReason) {
		c.report(rowEvent{side: of, due: d, half: canary.Half{Cause: causeOfDrop(why)}, settled: true})
	}
}

// causeOfDrop returns the party responsible for a request that was not sent.
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
	o.report(rowEvent{side: o.side, id: id, half: halfOf(r, o.slo), settled: true})
}

// mostLate is the greatest share of a request's first latency that replayd may be late by itself.
const mostLate = 0.05

// halfOf judges a finished request.
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

// run judges every second until ctx is done, and then a last time.
func (c *comparison) run(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			c.take()
			c.pairing.Close(now.Add(-beginsWithin))
			c.Judged(c.verdict.Judge())
		case <-ctx.Done():
			c.take()
			c.pairing.CloseAll()
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
		if e.id == "" {
			e.id = e.due.ID()
		}
		if e.settled {
			c.pairing.Settle(e.side, e.id, e.half)
		} else {
			c.pairing.Due(e.side, e.id, e.due.At.Round(0), gapOf(e.due)) // by the wall clock both sides have the same instant
		}
	}
}

// gapOf returns the least time between a later turn and the turn before.
func gapOf(d *schedule.Due) time.Duration {
	if d.Turn == 0 {
		return 0
	}
	return max(d.Delay, d.Gap)
}

// withCandidate appends the workload that sends the candidate's requests.
func (g *Generation) withCandidate(workloads []config.Workload) []config.Workload {
	o := g.options.Compare
	if o == nil {
		return workloads
	}
	urls := map[string]string{}
	for _, t := range g.options.Config.Targets {
		urls[t.Name] = t.URL
	}
	for _, w := range workloads {
		if w.Name == o.Workload {
			// One server on both sides would find the texts of the one in its cache for the other.
			g.comparison = newComparison(*o, urls[w.Target] != urls[o.Candidate])
			w.Name, w.Target = o.mirrored(), o.Candidate
			return append(slices.Clone(workloads), w)
		}
	}
	return workloads
}
