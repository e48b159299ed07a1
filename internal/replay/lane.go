package replay

import (
	"sync"
	"time"

	"replayd/internal/dispatch"
	"replayd/internal/measure"
	"replayd/internal/openai"
	"replayd/internal/trace"
)

// A lane carries one request at a time.
type lane struct {
	work   chan struct{} // tells the lane that next is a request; capacity 1, so that the pacer never waits
	phase  measure.RunPhase
	whole  bool // requests unstreamed answers
	number int  // index among the runner's lanes
	wire   *openai.Lane
	req    measure.Request
	next   handed // the row of req; of a free lane its last row
	begun  bool   // writeFirst has seen its message
}

// lanes has the lanes of a runner. It starts and ends them.
type lanes struct {
	idle    []*lane // free ones; the one used last is last
	started int
	freed   *lane       // its request has just ended; set during a Step
	launch  func(*lane) // starts the goroutine of a lane
	running sync.WaitGroup
}

// take removes and returns a free lane: the one whose request has just ended, otherwise the one used last, whose
// connection is youngest. nil: none.
func (s *lanes) take() (l *lane) {
	switch n := len(s.idle); {
	case s.freed != nil:
		l, s.freed = s.freed, nil
	case n > 0:
		l, s.idle = s.idle[n-1], s.idle[:n-1]
	}
	return l
}

// close ends the free lanes.
func (s *lanes) close() {
	for _, l := range s.idle {
		close(l.work)
	}
	s.idle = nil
}

type handed struct {
	row *dispatch.Row
	at  time.Time // when the row was given to the lane
}

// startLane starts one more lane, with the lock held.
func (r *Runner) startLane() *lane {
	l := &lane{
		work: make(chan struct{}, 1), phase: r.phase, whole: r.w.Whole, number: r.lanes.started, wire: r.w.Client.Lane(),
	}
	r.lanes.started++
	r.lanes.launch(l)
	return l
}

// fill starts the measure.Request of the lane's next item.
func (l *lane) fill() {
	row, t := l.next.row, l.req.Timeline
	l.req = measure.Request{
		ID: row.ID, Loop: row.Due.Loop.Number, Row: row.Due.Number, Session: row.Due.Session, Turn: row.Due.Turn, Model: row.Due.Model,
		Phase: l.phase, Lane: l.number,
		InputTokens: row.Due.InputTokens, OutputTokens: row.Due.OutputTokens,
		Overhead: row.Message.Cut, CountedInput: row.Message.Counted,
		Timeline: measure.Timeline{
			Planned: row.Planned, Due: row.Due.At, Ready: row.Ready, Lane: l.next.at, Waited: row.Waited,
			Whole: l.whole, Chunks: t.Chunks[:0], ReadDelays: t.ReadDelays[:0],
		},
		Text: l.req.Text[:0],
	}
}

// place returns the place of a row's session among the pods of the target.
func (r *Runner) place(row *dispatch.Row) uint64 {
	place := r.w.Plan.Place(&row.Due)
	if r.w.Sides == nil {
		return place
	}
	return trace.OnSide(place, r.w.Candidate, uint64(max(1, r.w.Client.NumPods())))
}

// writeFirst writes the first bytes of the lane's next item if that does not block. A message that names another model
// than the server has by now is left to the lane, which builds it anew.
func (r *Runner) writeFirst(l *lane) {
	if l.begun = !r.isStale(l.next.row); l.begun {
		l.wire.Begin(l.next.row.Message.Body, &l.req)
	}
}

func (r *Runner) isStale(row *dispatch.Row) bool { return row.Message.Form != r.w.Client.Form() }
