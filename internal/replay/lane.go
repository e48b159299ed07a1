package replay

import (
	"context"
	"time"

	"replayd/internal/measure"
	"replayd/internal/openai"
)

// A lane carries one request at a time.
type lane struct {
	work chan struct{} // a request is in next; room for one, so that the pacer never waits
	wire *openai.Lane
	req  measure.Request
	next handed // what req is about; of a free lane its last
}

type handed struct {
	item *item
	at   time.Time // when the lane was free for it
}

// startLane starts one more lane, with the lock held.
func (r *Runner) startLane(hard context.Context) *lane {
	l := &lane{work: make(chan struct{}, 1), wire: r.w.Client.Lane()}
	r.running.Go(func() { r.carry(hard, l) })
	return l
}

// carry is a lane's life: requests until its channel is closed.
func (r *Runner) carry(hard context.Context, l *lane) {
	defer l.wire.Close()
	for range l.work {
		for more := true; more; more = r.finish(l) {
			r.send(hard, l)
		}
	}
}

// fill starts the measure.Request of the lane's next item.
func (l *lane) fill() {
	it, t := l.next.item, l.req.Timeline
	l.req = measure.Request{
		ID: it.id, Loop: it.due.Loop.Number, Row: it.due.Number, Session: it.due.Session,
		InputTokens: it.due.InputTokens, OutputTokens: it.due.OutputTokens, Overhead: it.cut,
		Timeline: measure.Timeline{
			Planned: it.due.At, Due: it.due.At, Ready: it.ready, Lane: l.next.at, Waited: it.waited,
			Chunks: t.Chunks[:0], ReadDelays: t.ReadDelays[:0],
		},
	}
}

// begin writes the first bytes of the lane's next item, where that can be done without waiting.
func (l *lane) begin() {
	if it := l.next.item; it.err == nil {
		l.wire.Begin(it.body, &l.req)
	}
}

// send streams the lane's next request to its end.
func (r *Runner) send(hard context.Context, l *lane) {
	it := l.next.item
	if it.err != nil {
		l.req.Outcome, l.req.Error = measure.ConnectFailed, it.err.Error()
		l.req.Timeline.End = l.next.at // no write: nothing was sent
		return
	}
	l.wire.Do(hard, it.body, &l.req, openai.Hooks{
		Sent:  func() { r.sent(it) },
		Again: func() ([]byte, error) { m := r.message(it, nil, nil); return m.body, m.err },
	})
}

// sent gives the bytes of a written message back: a retry builds them again.
func (r *Runner) sent(it *item) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.giveBack(it)
	r.changed.Signal()
}

// finish reports a request that has ended and gives the lane what waits for one. False: it is free, and no longer its
// goroutine's to touch, or the runner is done.
func (r *Runner) finish(l *lane) (more bool) {
	it, req := l.next.item, &l.req
	r.w.Count.Finished(req)
	for _, o := range r.w.Observers {
		o.Observe(req)
	}
	if it.err == nil { // else nothing was sent
		r.w.Target.heard(req)
	}

	seen := r.look()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.giveBack(it)
	before, _ := r.queue.next()
	now := r.align()
	r.queue.purse.correct(it, req)
	if g := r.queue.guard; g != nil {
		if it.err == nil {
			g.health.ended(now, req.Outcome)
		}
		r.judge(now, seen)
	}
	r.queue.finish(it, req.Outcome == measure.OK, req.Timeline.End, now)
	r.queue.free++
	if next := r.queue.take(now); next != nil {
		r.queue.free--
		l.next = handed{next, now}
		l.fill()
		return true
	}
	if r.done {
		close(l.work) // as settle does for lanes that are free
		return false
	}
	r.idle = append(r.idle, l)
	r.changed.Signal() // the builder lets one message through for a free lane
	if at, ok := r.queue.next(); ok && (before.IsZero() || at.Before(before)) {
		r.sleeper.Wake() // a session's turn is due before what the pacer sleeps for
	}
	return false
}
