package dispatch

import (
	"time"

	"replayd/internal/measure"
)

// sessionsAhead is how many sessions a closed loop of sessions reads before they begin.
const sessionsAhead = 16

// admitSession takes one of the places of Config.Sessions for a row's session. It returns false if none is free.
func (d *Dispatcher) admitSession(r *Row) bool {
	s := r.session
	switch {
	case d.Sessions == 0, r.admitted, s != nil && s.admitted:
		return true
	case d.Slots.sessions >= d.Sessions:
		return false
	case s != nil:
		s.admitted = true
	default:
		r.admitted = true
	}
	d.takePlaces(1)
	return true
}

// takePlaces takes places of Config.Sessions, or gives them back.
func (d *Dispatcher) takePlaces(n int) {
	d.closed.active += n
	d.Slots.sessions += n
}

// vacate gives a place back, after a failure not at once: sessions of a server that is down would end in a busy loop.
func (d *Dispatcher) vacate(failed bool) {
	if failed {
		d.closed.vacant = append(d.closed.vacant, d.now.Add(connectPause))
		return
	}
	d.takePlaces(-1)
}

func (d *Dispatcher) begin(r *Row, at time.Time) {
	s := r.session
	if s == nil || !s.begun.IsZero() {
		return
	}
	s.begun = at
	d.do(Action{Kind: SessionBegun, Row: r})
}

// account records in a session how the request of a row has ended. A row without a session is one of a single request.
func (d *Dispatcher) account(r *Row, e Event) {
	s, o := r.session, e.Outcome
	if s == nil {
		if r.admitted && o.Failed() && o.Eligible() {
			r.admitted = false
			d.vacate(true)
		}
		return
	}
	ready := r.Ready
	if d.closed != nil && d.Sessions == 0 && r.calledAt.Before(ready) && !r.calledAt.IsZero() {
		ready = r.calledAt // the row came due when a lane was free
	}
	r.turn.path = r.turn.path.Then(ready, e.Write, e.First, e.At)
	if r.turn.path.End().After(s.path.End()) {
		s.path = r.turn.path
	}
	s.requests++
	if o == measure.OK {
		s.prompt, s.cached, s.cacheReported = s.prompt+e.Usage.Prompt, s.cached+e.Usage.Cached, s.cacheReported ||
			e.Usage.CacheReported
	}
	if o != measure.OK && o != measure.Cancelled { // a user may go on after either
		s.loses(r, o.Eligible())
	}
}

// loses records that a row failed or was dropped. Where that counts against the service, the session has failed.
func (s *session) loses(r *Row, counts bool) {
	if s.lost.IsZero() {
		s.lost = r.Due.At
	}
	s.failed, s.cut = s.failed || counts, s.cut || !counts
}

// endSession tells that a session has ended: none of its rows is open, and no more will be read.
func (d *Dispatcher) endSession(s *session) {
	if s.over {
		return
	}
	s.over = true
	if s.admitted {
		s.admitted = false
		d.vacate(s.failed)
	}
	if s.begun.IsZero() {
		return
	}
	outcome := measure.SessionOK
	switch {
	case s.failed:
		outcome = measure.SessionNotOK
	case s.cut, !s.opened, !s.whole, s.requests == 0: // a part of it was not played, or all rows were filtered
		outcome = measure.SessionCut
	}
	d.do(Action{Kind: SessionEnded, Session: &measure.Session{
		Name: s.key.name, Loop: s.loop.Number, Pass: s.key.pass, Outcome: outcome, Begun: s.begun, Time: s.path.Since(s.begun),
		Requests: s.requests, Prompt: s.prompt, Cached: s.cached, CacheReported: s.cacheReported,
	}})
}

// endIdle ends the sessions without open rows of a loop that is read, in the order in which they became idle.
func (d *Dispatcher) endIdle(l *Loop) {
	for _, r := range l.idle {
		if r.of.open == 0 && r.of.idles == r.times {
			d.endSession(r.of)
		}
	}
}
