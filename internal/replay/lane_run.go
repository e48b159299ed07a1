package replay

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"replayd/internal/dispatch"
	"replayd/internal/measure"
	"replayd/internal/openai"
)

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

// renew builds the lane's next message anew. That takes its time after the due instant: the request is late, by
// replayd's own doing.
func (r *Runner) renew(l *lane) {
	row := l.next.row
	m, _ := r.message(row, nil, nil)
	if m.Err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	row.Message = m
}

// send sends the lane's next request and reads the answer to its end.
func (r *Runner) send(hard context.Context, l *lane) {
	row := l.next.row
	if !l.begun && r.isStale(row) {
		r.renew(l)
	}
	l.wire.Do(hard, row.Message.Body, &l.req, openai.Hooks{
		Sent:   func() { r.sent(l) },
		Read:   func(now time.Time) { r.w.Target.read(now); r.w.Pacer.stepOverdue(now) },
		Again:  func() ([]byte, error) { return r.again(row) },
		Cancel: row.Cancel, CancelAfter: r.w.Cancel.After,
		Keep: r.w.Keep || r.w.History && row.InSession(), Count: r.w.CountOutput, Echo: r.echo,
	})
}

// again builds a row's message for a second send, if the budget allows one.
func (r *Runner) again(row *dispatch.Row) ([]byte, error) {
	m, _ := r.message(row, nil, nil)
	if m.Err != nil {
		return nil, m.Err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if full := r.d.SendAgain(row, r.w.clock().Own); full != "" {
		return nil, fmt.Errorf("%s of the budget is spent", full)
	}
	return m.Body, nil
}

var headEnd = []byte("\r\n\r\n")

// sent releases the bytes of a lane's message after it was written or has failed. A retry builds them again.
func (r *Runner) sent(l *lane) {
	row := l.next.row
	if r.w.Reuse != nil && !l.req.Timeline.Write.IsZero() {
		if rec, err := r.whole(row); err == nil {
			salt := r.w.Salt.At(r.w.saltName(), row.Loop().Salt, row.Due.Passes(), rec)
			r.w.Reuse.Add(r.w.Prompt, rec, salt, r.phase == measure.Profiling)
		}
	}
	if r.w.Saved != nil && r.phase == measure.Profiling && !l.req.Timeline.Write.IsZero() {
		if _, body, ok := bytes.Cut(row.Message.Body, headEnd); ok {
			r.w.Saved(Sent{Due: &row.Due, Offset: row.Offset + row.Due.At.Sub(row.Planned), Body: body})
		}
	}
	r.act(dispatch.Event{Kind: dispatch.Written, Row: row})
}

// finish reports a request that has ended and gives the lane the next row that waits. It returns false if the lane is
// free, after which its goroutine must not touch it, or if the runner is done.
func (r *Runner) finish(l *lane) (more bool) {
	row, req := l.next.row, &l.req
	if err := l.wire.Unsent(); err != nil {
		r.count.Unsent()
		r.log.notSent(row.ID, err)
		return r.pass(l, dispatch.Event{Kind: dispatch.Lacked, Row: row, Seen: r.guard.read()})
	}
	r.count.Finished(req)
	r.log.answered(req)
	for _, o := range r.observers {
		o.Observe(req)
	}
	r.w.Target.ended(req)

	e := dispatch.Event{
		Kind: dispatch.Ended, Row: row, Outcome: req.Outcome, Usage: req.Usage,
		Write: req.Timeline.Write, At: req.Timeline.End,
		Token: l.wire.Echoed(), Echo: l.wire.Echo(), Replica: string(req.Replica), Seen: r.guard.read(),
	}
	if ttft, streamed := req.TTFT(); streamed {
		e.First = e.Write.Add(ttft)
	}
	if !req.TextCut {
		e.Text = req.Text
	}
	return r.pass(l, e)
}

// pass passes the event that frees a lane, and gives the lane the next row that waits. It returns what finish returns.
func (r *Runner) pass(l *lane, e dispatch.Event) (more bool) {
	var room [4]*lane // on the stack unless there are more
	r.mu.Lock()
	if e.Echo == measure.EchoKept {
		e.Token = r.echo.Join(e.Row.Token(), e.Token, time.Now())
	}
	r.use.end(l.req.Pod, &l.req.Timeline)
	r.lanes.freed = l
	given := r.step(e, room[:0])
	more = r.lanes.freed == nil
	r.lanes.freed = nil
	switch {
	case more:
		given = given[1:] // the lane itself, which got the first row
	case r.over:
		close(l.work) // end closes those of free lanes
	default:
		r.lanes.idle = append(r.lanes.idle, l)
	}
	if e.Kind == dispatch.Ended {
		r.count.Routed(e.Row.Moved, e.Row.Echo)
	}
	r.wakeOthers()
	r.mu.Unlock()
	r.start(given)
	return more
}
