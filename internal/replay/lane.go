package replay

import (
	"bytes"
	"context"
	"time"

	"replayd/internal/dispatch"
	"replayd/internal/measure"
	"replayd/internal/openai"
)

// A lane carries one request at a time.
type lane struct {
	work   chan struct{} // a request is in next; room for one, so that the pacer never waits
	phase  measure.RunPhase
	whole  bool // it asks for answers in one piece
	number int  // among the runner's lanes, from 0
	wire   *openai.Lane
	req    measure.Request
	next   handed // what req is about; of a free lane its last
}

type handed struct {
	row *dispatch.Row
	at  time.Time // when the lane was free for it
}

// startLane starts one more lane, with the lock held.
func (r *Runner) startLane() *lane {
	l := &lane{work: make(chan struct{}, 1), phase: r.phase, whole: r.w.Whole, number: r.lanes, wire: r.w.Client.Lane()}
	r.lanes++
	r.launch(l)
	return l
}

// carry is a lane's life: requests until its channel is closed.
func (r *Runner) carry(hard context.Context, l *lane) {
	defer l.wire.Close()
	for range l.work {
		for more := true; more; {
			r.send(hard, l)
			more = r.finish(l)
		}
	}
}

// fill starts the measure.Request of the lane's next item.
func (l *lane) fill() {
	row, t := l.next.row, l.req.Timeline
	l.req = measure.Request{
		ID: row.ID, Loop: row.Due.Loop.Number, Row: row.Due.Number, Session: row.Due.Session, Turn: row.Due.Turn,
		Phase: l.phase, Lane: l.number,
		InputTokens: row.Due.InputTokens, OutputTokens: row.Due.OutputTokens, Overhead: row.Message.Cut, CountedInput: row.Message.Counted,
		Timeline: measure.Timeline{
			Planned: row.Planned, Due: row.Due.At, Ready: row.Ready, Lane: l.next.at, Waited: row.Waited,
			Whole: l.whole, Chunks: t.Chunks[:0], ReadDelays: t.ReadDelays[:0],
		},
		Text: l.req.Text[:0],
	}
}

// writeFirst writes the first bytes of the lane's next item, where that can be done without waiting.
func (l *lane) writeFirst() {
	l.wire.Begin(l.next.row.Message.Body, &l.req)
}

// send streams the lane's next request to its end.
func (r *Runner) send(hard context.Context, l *lane) {
	row := l.next.row
	l.wire.Do(hard, row.Message.Body, &l.req, openai.Hooks{
		Sent:   func() { r.sent(l) },
		Read:   func(now time.Time) { r.w.Target.reads(now); r.w.Pacer.stepOverdue(now) },
		Again:  func() ([]byte, error) { m, _ := r.message(row, nil, nil); return m.Body, m.Err },
		Cancel: row.Cancel, CancelAfter: r.w.Cancel.After,
		Keep: r.w.Keep || r.w.History && row.InSession(), Count: r.w.CountOutput,
	})
}

var headEnd = []byte("\r\n\r\n")

// sent gives the bytes of a lane's message back, which was written or never will be: a retry builds them again.
func (r *Runner) sent(l *lane) {
	row := l.next.row
	if r.w.Reuse != nil && !l.req.Timeline.Write.IsZero() {
		r.w.Reuse.Add(r.w.Prompt, &row.Due.Record, r.w.Salt.At(r.w.Name, row.Loop().Salt, row.Due.Passes()), r.phase == measure.Profiling)
	}
	if r.w.Saved != nil && r.phase == measure.Profiling && !l.req.Timeline.Write.IsZero() {
		if _, body, ok := bytes.Cut(row.Message.Body, headEnd); ok {
			r.w.Saved(Sent{Due: &row.Due, Offset: row.Offset + row.Due.At.Sub(row.Planned), Body: body})
		}
	}
	r.mu.Lock()
	given := r.step(dispatch.Event{Kind: dispatch.Written, Row: row}, nil)
	r.mu.Unlock()
	r.start(given)
}

// finish reports a request that has ended and gives the lane what waits for one. False: it is free, and no longer its
// goroutine's to touch, or the runner is done.
func (r *Runner) finish(l *lane) (more bool) {
	row, req := l.next.row, &l.req
	r.count.Finished(req)
	for _, o := range r.observers {
		o.Observe(req)
	}
	r.w.Target.heard(req)

	e := dispatch.Event{Kind: dispatch.Ended, Row: row, Outcome: req.Outcome, Usage: req.Usage, At: req.Timeline.End, Seen: r.look()}
	if !req.TextCut {
		e.Text = req.Text
	}
	var room [4]*lane // on the stack, as long as it is enough
	r.mu.Lock()
	r.freed = l
	given := r.step(e, room[:0])
	more = r.freed == nil
	r.freed = nil
	switch {
	case more:
		given = given[1:] // itself, the first that a row was handed to
	case r.over:
		close(l.work) // as end does for lanes that are free
	default:
		r.idle = append(r.idle, l)
	}
	r.wakeOthers()
	r.mu.Unlock()
	r.start(given)
	return more
}
