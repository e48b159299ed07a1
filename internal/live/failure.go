package live

import (
	"time"

	"replayd/internal/measure"
)

// Bounds on the list of failures and on what one of them says.
const (
	keptFailures  = 10
	failureBytes  = 240
	failureIDSize = 128
)

// A failure is how a request ended that did not end well, and how many others ended just so since it was first seen.
type failure struct {
	at      time.Time
	id      string
	outcome measure.Outcome
	text    string
	count   int64
	fresh   bool // changed since it was told
	told    int  // in which tick it was, 0 for not yet
}

// failures are the last different ones, the newest first. A server that is down fails every request in the same
// words: these are one line with a count, so that the others stay visible.
type failures struct {
	n    int
	list [keptFailures]failure
	tick int
}

// add takes a finished request. It keeps the strings and allocates nothing.
func (f *failures) add(r *measure.Request) {
	place := 0
	for place < f.n && (f.list[place].outcome != r.Outcome || !alike(f.list[place].text, r.Error)) {
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
		at: r.Timeline.End, id: r.ID, outcome: r.Outcome, text: r.Error,
		count: before.count + 1, fresh: true, told: before.told,
	}
}

// alike says whether two texts are the same as far as they are shown.
func alike(a, b string) bool { return a[:min(len(a), failureBytes)] == b[:min(len(b), failureBytes)] }

// A shownFailure is a failure as it is sent.
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

// news is the one among those that changed which was not told for longest, so that in an event there is one text at
// most, and all have their turn.
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
