package replay

import "time"

const (
	probeEvery    = 5 * time.Second // between two probes of a target
	maxProbePause = time.Minute     // longest pause between two probes that measure a template, after failures
)

// A targetState is the state of a target by its latest requests and probes.
type targetState int

const (
	unknown targetState = iota // nothing yet
	down                       // the latest one did not reach it
	failing                    // they reach it, but it has not answered the latest probe as expected
	up                         // they reach it, and it has
)

// A targetEvent is the result of one request or probe.
type targetEvent int

const (
	gotAnswer   targetEvent = iota // an HTTP answer, or a part of one
	gotNotFound                    // the answer "not found": it may be another server, with another model or chat template
	gotOK                          // a request ended ok
	gotNothing                     // no connection, or no answer to a probe
	probeFailed                    // the answer to a probe was not as expected
	probePassed                    // a probe has ended as expected
)

// after returns the state after an event.
func (s targetState) after(e targetEvent) targetState {
	switch {
	case e == gotNothing, e == probePassed && s == down: // it was lost during the probe
		return down
	case e == probePassed:
		return up
	case e == probeFailed:
		return min(s, failing)
	}
	return max(s, failing)
}

// health is the state of a target, and when it is probed next. It has no clock and no lock: it is a function of
// events and their times.
type health struct {
	state    targetState
	began    time.Time     // the latest probe; zero: none did
	retry    time.Time     // when to probe again after the latest probe has failed; zero: it has not
	listed   time.Time     // the end of the latest list of models or probe
	failures int           // probes in a row that failed
	pause    time.Duration // before the next probe that makes the engine generate a token, after failures
	again    bool          // to be probed again: it may be another server, or serves another model
	served   bool          // a request ended ok although it is not up
}

// see takes an event. It reports whether the next probe may be due sooner now.
func (h *health) see(e targetEvent) (sooner bool) {
	before := *h
	h.state = h.state.after(e)
	h.again = h.again || e == gotNotFound || before.state == down && h.state != down
	h.served = h.served || e == gotOK && h.state != up
	return h.again != before.again || h.served != before.served
}

// begin begins a probe, which serves all reasons for one until now.
func (h *health) begin(now time.Time) { h.began, h.again, h.served = now, false, false }

// end ends a probe, which has failed or not. token says that the engine had to generate one.
func (h *health) end(now time.Time, failed, token bool) {
	h.listed = now
	if !failed {
		h.failures, h.retry = 0, time.Time{}
		return
	}
	wait := probeEvery
	switch h.failures++; {
	case h.failures == 1:
		wait, h.pause = time.Second, probeEvery
	case token:
		wait, h.pause = h.pause, min(2*h.pause, maxProbePause)
	}
	h.retry = now.Add(wait)
}

// next returns when the target is asked next, for its list of models or by a whole probe. Without news of the
// target for 5 s, the list shows whether it is reached; an unclear list is asked for anew whatever the news.
func (h *health) next(news time.Time, unclear bool) (at time.Time, probe bool) {
	at = news.Add(probeEvery)
	if list := h.listed.Add(probeEvery); unclear && list.Before(at) {
		at = list
	}
	due, soonest := h.retry, h.began.Add(probeEvery)
	switch failed := !h.retry.IsZero(); {
	case !failed && !h.again:
		return at, false
	case !failed, h.served && soonest.Before(due):
		due = soonest
	}
	if at.Before(due) {
		return at, false
	}
	return due, true
}
