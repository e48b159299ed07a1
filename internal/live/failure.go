package live

import "replayd/internal/measure"

// Limits of the list of failures and of the text of a failure.
const (
	keptFailures  = 10
	failureBytes  = 240
	failureIDSize = 128
)

// A failure is a request that did not end well, with the number of equal failures since it was first seen. A viewer
// gets its id and text cut.
type failure struct {
	At      instant         `json:"at"`
	ID      string          `json:"id"`
	Outcome measure.Outcome `json:"outcome"`
	Text    string          `json:"text"`
	Count   int64           `json:"count"`

	fresh bool // changed since it was sent
	told  int  // the tick in which it was last sent; 0: not yet
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
	next := failure{At: instant(r.Timeline.End), ID: r.ID, Outcome: r.Outcome, Text: string(r.Error), Count: 1, fresh: true}
	place := 0
	for place < f.n && (f.list[place].Outcome != next.Outcome || !alike(f.list[place].Text, next.Text)) {
		place++
	}
	if place < f.n {
		next.Count, next.told = f.list[place].Count+1, f.list[place].told
	} else {
		f.n = min(f.n+1, keptFailures)
		place = f.n - 1
	}
	copy(f.list[1:place+1], f.list[:place])
	f.list[0] = next
}

// alike reports whether two texts are equal as far as they are shown.
func alike(a, b string) bool { return a[:min(len(a), failureBytes)] == b[:min(len(b), failureBytes)] }

func (f failure) shown() failure {
	f.ID, f.Text = cut(f.ID, failureIDSize), cut(f.Text, failureBytes)
	return f
}

func (f *failures) all() []failure {
	shown := make([]failure, f.n)
	for i, one := range f.list[:f.n] {
		shown[i] = one.shown()
	}
	return shown
}

// news returns the changed failure that was not sent for the longest time, if any. An event has at most one failure,
// and every failure has its turn.
func (f *failures) news() []failure {
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
	return []failure{f.list[next].shown()}
}
