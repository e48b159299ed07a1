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
	work   chan struct{} // tells the lane that next is a request; capacity 1, so that the pacer never waits
	phase  measure.RunPhase
	whole  bool // requests unstreamed answers
	number int  // index among the runner's lanes
	wire   *openai.Lane
	req    measure.Request
	next   handed // the row of req; of a free lane its last row
}

type handed struct {
	row *dispatch.Row
	at  time.Time // when the row was given to the lane
}

// startLane starts one more lane, with the lock held.
func (r *Runner) startLane() *lane {
	l := &lane{work: make(chan struct{}, 1), phase: r.phase, whole: r.w.Whole, number: r.lanes, wire: r.w.Client.Lane()}
	r.lanes++
	r.launch(l)
	return l
}

// runLane is the goroutine of a lane: it sends requests until the channel is closed.
func (r *Runner) runLane(hard context.Context, l *lane) {
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

// sendBack joins the router's token to the lane's next message, whenever that was built. The lock is held.
func (r *Runner) sendBack(l *lane) {
	if r.w.Echo != nil {
		l.wire.SendBack(r.w.Echo, l.next.row.Token())
	}
}

// writeFirst writes the first bytes of the lane's next item if that does not block.
func (l *lane) writeFirst() {
	l.wire.Begin(l.next.row.Message.Body, &l.req)
}

// send sends the lane's next request and reads the answer to its end.
func (r *Runner) send(hard context.Context, l *lane) {
	row := l.next.row
	l.wire.Do(hard, row.Message.Body, &l.req, openai.Hooks{
		Sent:   func() { r.sent(l) },
		Read:   func(now time.Time) { r.w.Target.reads(now); r.w.Pacer.stepOverdue(now) },
		Again:  func() ([]byte, error) { m, _ := r.message(row, nil, nil); return m.Body, m.Err },
		Cancel: row.Cancel, CancelAfter: r.w.Cancel.After,
		Keep: r.w.Keep || r.w.History && row.InSession(), Count: r.w.CountOutput, Echo: r.w.Echo,
	})
}

var headEnd = []byte("\r\n\r\n")

// sent releases the bytes of a lane's message after it was written or has failed. A retry builds them again.
func (r *Runner) sent(l *lane) {
	row := l.next.row
	if r.w.Reuse != nil && !l.req.Timeline.Write.IsZero() {
		if rec, err := r.whole(row); err == nil {
			r.w.Reuse.Add(r.w.Prompt, rec, r.w.Salt.At(r.w.saltName(), row.Loop().Salt, row.Due.Passes(), rec), r.phase == measure.Profiling)
		}
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

// finish reports a request that has ended and gives the lane the next row that waits. It returns false if the lane is free,
// after which its goroutine must not touch it, or if the runner is done.
func (r *Runner) finish(l *lane) (more bool) {
	row, req := l.next.row, &l.req
	r.count.Finished(req)
	for _, o := range r.observers {
		o.Observe(req)
	}
	r.w.Target.heard(req)

	e := dispatch.Event{
		Kind: dispatch.Ended, Row: row, Outcome: req.Outcome, Usage: req.Usage, Write: req.Timeline.Write, At: req.Timeline.End,
		Token: l.wire.Echoed(), Echo: l.wire.Echo(), Replica: req.Replica, Seen: r.look(),
	}
	if ttft, streamed := req.TTFT(); streamed {
		e.First = e.Write.Add(ttft)
	}
	if !req.TextCut {
		e.Text = req.Text
	}
	var room [4]*lane // on the stack unless there are more
	r.mu.Lock()
	r.freed = l
	given := r.step(e, room[:0])
	more = r.freed == nil
	r.freed = nil
	switch {
	case more:
		given = given[1:] // the lane itself, which got the first row
	case r.over:
		close(l.work) // end closes those of free lanes
	default:
		r.idle = append(r.idle, l)
	}
	r.count.Routed(row.Moved(), row.Echo())
	r.wakeOthers()
	r.mu.Unlock()
	r.start(given)
	return more
}
