package comparison

import (
	"cmp"
	"net/http"
	"strings"
	"sync"
	"time"

	"replayd/internal/canary"
	"replayd/internal/measure"
	"replayd/internal/schedule"
)

// A Side takes the reports of the runner of one side.
type Side struct {
	queue *queue
	side  canary.Side
	trace int // version
	slo   measure.SLO
}

// Due says that a row came due. It is called between a due instant and the write of the request.
func (s Side) Due(d *schedule.Due, planned time.Time) {
	s.queue.add(rowEvent{side: s.side, trace: s.trace, due: d, planned: planned})
}

// Unsent says that a row was not sent. lost is when the first row of its session that failed or was dropped was due.
func (s Side) Unsent(d *schedule.Due, why measure.DropReason, lost time.Time) {
	s.queue.add(rowEvent{side: s.side, trace: s.trace, due: d, half: unsentHalf(why), settled: true, lost: lost})
}

// Observe says how a request has ended. It implements replay.Observer.
func (s Side) Observe(r *measure.Request) {
	_, id, _ := strings.Cut(r.ID, "/") // the workload's name has none
	id, _, _ = strings.Cut(id, "~")    // both sides began anew together
	s.queue.add(rowEvent{
		side: s.side, trace: s.trace, id: id, half: halfOf(r, s.slo), settled: true,
		missing: r.Status == http.StatusNotFound, tokens: float64(max(0, r.Usage.Output)),
	})
}

// A rowEvent says that a row came due on a side, or how the side's request of the row ended. It is made between a due
// instant and the write of the request, so it only points to the row.
type rowEvent struct {
	side    canary.Side
	trace   int           // version
	due     *schedule.Due // nil: the request id has ended
	planned time.Time     // by the wall clock
	id      string        // of the row; "": due has it
	half    canary.Half
	tokens  float64 // of the answer, also of one that has failed
	settled bool
	lost    time.Time // of a request that was not sent: see Side.Unsent
	missing bool      // the server answered "not found"
	at      time.Time // of such a one: when it was taken
}

// A queue has the events that the runners of both sides have added and that are not judged yet.
type queue struct {
	mu     sync.Mutex
	events []rowEvent
	// digests of the rows that the runners of both sides have played, the latest last; at least one, once there is a
	// runner
	traces []string
	closed bool
}

// version returns the number of a version of the rows. Each side reads a trace that has changed by itself; the first
// one to do so begins a new version.
func (q *queue) version(rows string) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n := len(q.traces); n == 0 || q.traces[n-1] != rows {
		q.traces = append(q.traces, rows)
	}
	return len(q.traces) - 1
}

func (q *queue) rows(version int) string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.traces[version]
}

func (q *queue) add(e rowEvent) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.events = append(q.events, e)
	}
}

func (q *queue) take() []rowEvent {
	q.mu.Lock()
	defer q.mu.Unlock()
	events := q.events
	q.events = nil
	return events
}

// close drops later events.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
}

func unsentHalf(why measure.DropReason) canary.Half {
	h := canary.Half{Request: canary.Request{Why: string(why)}, Void: canary.VoidInvalid}
	switch why {
	case measure.Overload, measure.Guarded, measure.SessionFailed: // the server's doing
		h.Fault, h.Void = true, canary.NotVoid
	case measure.Budget:
		h.Void = canary.VoidBudget
	case measure.Paused:
		h.Void = canary.VoidPaused
	case measure.Missed:
		h.Void = canary.VoidMissed
	case measure.Shutdown:
		h.Void = canary.VoidShutdown
	}
	return h
}

// halfOf judges a finished request.
func halfOf(r *measure.Request, slo measure.SLO) canary.Half {
	t := &r.Timeline
	h := canary.Half{Ready: t.Ready, Written: r.Sent(), Request: canary.Request{Sent: t.Write, End: t.End, Pod: r.Pod}}
	values := r.Values()
	good, judged := slo.Good(r.Outcome, &values)
	if h.Bad = judged && !good; h.Bad {
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
		if _, unclear := r.MostTPOT(); !unclear {
			h.TPOT, _ = r.TPOT()
		}
		h.E2E, _ = r.E2E()
		h.Answer = canary.Answer{
			Tokens: r.Usage.Output, Chunks: r.Usage.Source == measure.UsageCounted,
			Finish: canary.FinishOf(r.Finish),
		}
		if h.TTFT > 0 {
			h.First = t.Write.Add(h.TTFT)
		}
	}
	switch {
	case r.Outcome == measure.Aborted:
		h.Void = canary.VoidAborted
	case r.Outcome == measure.Cancelled: // as the workload wants, on both sides
		h.Bad = false
	case t.Waited: // the side's answers took so long that no lane was free
		h.Fault = true
		h.Why = cmp.Or(h.Why, "no lane was free")
	default:
		h.Late = r.Lateness()
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
