package replay

import (
	"bytes"
	"context"
	"time"

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
	item *item
	at   time.Time // when the lane was free for it
}

// startLane starts one more lane, with the lock held.
func (r *Runner) startLane(hard context.Context) *lane {
	l := &lane{work: make(chan struct{}, 1), phase: r.phase, whole: r.w.Whole, number: r.lanes, wire: r.w.Client.Lane()}
	r.lanes++
	r.running.Go(func() { r.carry(hard, l) })
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
	it, t := l.next.item, l.req.Timeline
	l.req = measure.Request{
		ID: it.id, Loop: it.due.Loop.Number, Row: it.due.Number, Session: it.due.Session, Turn: it.due.Turn,
		Phase: l.phase, Lane: l.number,
		InputTokens: it.due.InputTokens, OutputTokens: it.due.OutputTokens, Overhead: it.cut, CountedInput: it.counted,
		Timeline: measure.Timeline{
			Planned: it.planned, Due: it.due.At, Ready: it.ready, Lane: l.next.at, Waited: it.waited,
			Whole: l.whole, Chunks: t.Chunks[:0], ReadDelays: t.ReadDelays[:0],
		},
		Text: l.req.Text[:0],
	}
}

// begin writes the first bytes of the lane's next item, where that can be done without waiting.
func (l *lane) begin() {
	l.wire.Begin(l.next.item.body, &l.req)
}

// send streams the lane's next request to its end.
func (r *Runner) send(hard context.Context, l *lane) {
	it := l.next.item
	l.wire.Do(hard, it.body, &l.req, openai.Hooks{
		Sent:   func() { r.sent(l) },
		Read:   func(now time.Time) { r.w.Target.reads(now); r.w.Pacer.relieve(now) },
		Again:  func() ([]byte, error) { m := r.message(it, nil, nil); return m.body, m.err },
		Cancel: it.cancel, CancelAfter: r.w.Cancel.After,
		Keep: r.w.Keep || r.w.Carry && it.session != nil, Count: r.w.CountOutput,
	})
}

var headEnd = []byte("\r\n\r\n")

// sent gives the bytes of a lane's message back, which was written or never will be: a retry builds them again.
func (r *Runner) sent(l *lane) {
	it := l.next.item
	if r.w.Reuse != nil && !l.req.Timeline.Write.IsZero() {
		r.w.Reuse.Add(r.w.Prompt, &it.due.Record, r.w.Salt.At(r.w.Name, it.loop.salt, it.due.Passes()), r.phase == measure.Profiling)
	}
	if r.w.Saved != nil && r.phase == measure.Profiling && !l.req.Timeline.Write.IsZero() {
		if _, body, ok := bytes.Cut(it.body, headEnd); ok {
			r.w.Saved(Sent{Due: &it.due, Offset: it.offset + it.due.At.Sub(it.planned), Body: body})
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.giveBack(it)
	r.changed.Signal()
}

// finish reports a request that has ended and gives the lane what waits for one. False: it is free, and no longer its
// goroutine's to touch, or the runner is done.
func (r *Runner) finish(l *lane) (more bool) {
	it, req := l.next.item, &l.req
	r.count.Finished(req)
	for _, o := range r.w.Observers {
		o.Observe(req)
	}
	r.w.Target.heard(req)

	seen := r.look()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.giveBack(it)
	now := r.align()
	r.queue.purse.correct(it, req)
	if g := r.queue.guard; g != nil {
		if req.Outcome != measure.Cancelled && req.Outcome != measure.Aborted { // they say nothing of the target
			g.Health.Ended(now, req.Outcome.Failed())
		}
		r.judge(now, seen)
	}
	well := req.Outcome == measure.OK || req.Outcome == measure.Cancelled // a user may go on after either
	if r.w.Carry && it.session != nil && well {
		it.session.keep(req)
	}
	r.queue.finish(it, well, req.Timeline.End, now)
	r.queue.freed(now, req.Outcome)
	r.wakeOthers()
	next := r.queue.take(now)
	r.rouse()
	if next != nil {
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
	return false
}
