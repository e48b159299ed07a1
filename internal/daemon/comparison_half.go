package daemon

import (
	"cmp"
	"strings"
	"time"

	"replayd/internal/canary"
	"replayd/internal/measure"
	"replayd/internal/schedule"
)

// causeOfDrop returns the party responsible for a request that was not sent.
func causeOfDrop(why measure.DropReason) canary.Cause {
	switch why {
	case measure.Overload, measure.Guarded, measure.SessionFailed:
		return canary.Server
	}
	return canary.Client
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
	if h.Bad = !slo.Good(r.Outcome, &values); h.Bad {
		h.Why = string(r.Outcome)
		if r.Outcome == measure.OK {
			h.Why = "missed the SLO"
		}
	}
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
		h.Why = cmp.Or(h.Why, "no lane was free")
	case soonest > 0 && float64(r.Lateness()) > mostLate*float64(soonest):
		h.Cause = canary.Client
	}
	return h
}

// gapOf returns the least time between a later turn and the turn before.
func gapOf(d *schedule.Due) time.Duration {
	if d.Turn == 0 {
		return 0
	}
	return max(d.Delay, d.Gap)
}
