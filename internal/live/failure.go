package live

import (
	"time"

	"replayd/internal/measure"
)

// Limits of the list of failures and of the text of a failure.
const (
	keptFailures  = 10
	failureBytes  = 240
	failureIDSize = 128
)

// A failure is a request that did not end well, with the number of equal failures since it was first seen.
type failure struct {
	at      time.Time
	id      string
	outcome measure.Outcome
	text    string
	count   int64
	fresh   bool // changed since it was sent
	told    int  // the tick in which it was last sent; 0: not yet
}

// failures holds the last different failures, the newest first. A server that is down fails every request with the same
// text. Equal failures are one line with a count, so that others stay visible.
type failures struct {
	n    int
	list [keptFailures]failure
	tick int
}

// add takes a finished request. It keeps the request's strings and allocates nothing.
func (f *failures) add(r *measure.Request) {
	place := 0
	for place < f.n && (f.list[place].outcome != r.Outcome || !alike(f.list[place].text, string(r.Error))) {
		place++
	}
	var before failure
	if place < f.n {
		before = f.list[place]
	} else {
		f.n = min(f.n+1, keptFailures)
		place = f.n - 1
	}
	copy(f.list[1:place+1], f.list[:place])
	f.list[0] = failure{
		at: r.Timeline.End, id: r.ID, outcome: r.Outcome, text: string(r.Error),
		count: before.count + 1, fresh: true, told: before.told,
	}
}

// alike reports whether two texts are equal as far as they are shown.
func alike(a, b string) bool { return a[:min(len(a), failureBytes)] == b[:min(len(b), failureBytes)] }

// A shownFailure is a failure as it is sent to a viewer.
type shownFailure struct {
	At      instant         `json:"at"`
	ID      string          `json:"id"`
	Outcome measure.Outcome `json:"outcome"`
	Text    string          `json:"text"`
	Count   int64           `json:"count"`
}

func (f failure) shown() shownFailure {
	return shownFailure{At: instant(f.at), ID: cut(f.id, failureIDSize), Outcome: f.outcome, Text: cut(f.text, failureBytes), Count: f.count}
}

func (f *failures) all() []shownFailure {
	shown := make([]shownFailure, f.n)
	for i, one := range f.list[:f.n] {
		shown[i] = one.shown()
	}
	return shown
}

// news returns the changed failure that was not sent for the longest time, if any. An event has at most one failure,
// and every failure has its turn.
func (f *failures) news() []shownFailure {
	f.tick++
	next := -1
	for i, one := range f.list[:f.n] {
		if one.fresh && (next < 0 || one.told < f.list[next].told) {
			next = i
		}
	}
	if next < 0 {
		return nil
	}
	f.list[next].fresh, f.list[next].told = false, f.tick
	return []shownFailure{f.list[next].shown()}
}
