package schedule

import "time"

// Runs are passes over the trace, each from an activation of a calendar on, or, with Queue, from when the run before is
// over. A run is over at the instant of its last row: an activation at that very instant does not fall into it.
//
// Which runs there are does not depend on when a process starts: they are those that follow from an activation that no
// earlier run can reach, since there was none before it for long enough. Where activations leave no such pause for two
// weeks, the runs begin anew each Monday at 0:00 UTC, at the first activation from there on, and a run that would go on
// beyond that is passed over. For passes of more than 42 hours a week is so many weeks that four of them fit.
type runs struct {
	calendar calendar
	overlap  Overlap
	length   time.Duration // of a run
}

const week = 7 * 24 * time.Hour

// frame returns the time from one border to the next.
func (r *runs) frame() time.Duration {
	return max(1, (4*r.length+week-1)/week) * week
}

// border is the last Monday at or before an instant at which runs may begin anew, counted from 5 January 1970.
func (r *runs) border(t time.Time) time.Time {
	const monday = 4 * 24 * 60 * 60
	frame := int64(r.frame() / time.Second)
	n, _ := floorDiv(t.Unix()-monday, frame)
	return time.Unix(n*frame+monday, 0).UTC()
}

// at is the start of the run that an instant is in, else of the next one. Where one run begins at the last row of
// another, that is in the earlier one.
func (r *runs) at(t time.Time) time.Time {
	start := r.anchor(r.calendar.last(t.Add(-1)))
	for r.dueBefore(start, t) {
		start = r.after(start)
	}
	return start
}

// dueBefore reports whether all rows of a run are due before an instant.
func (r *runs) dueBefore(start, t time.Time) bool { return start.Add(r.length).Before(t) }

// after returns the start of the run after the one that began at start.
func (r *runs) after(start time.Time) time.Time {
	over := start.Add(r.length)
	var next time.Time
	if r.overlap == Queue {
		next = latest(over, r.calendar.from(start.Add(1)))
	} else {
		next = r.calendar.from(latest(over, start.Add(1)))
	}
	border := r.border(start).Add(r.frame())
	if !next.Add(r.length).After(border) {
		return next
	}
	first := r.calendar.from(border)
	if next.Add(r.length).After(first) && r.anchor(first).Equal(first) {
		return first
	}
	return next
}

// mostSkipped bounds the work of counting to tens of milliseconds: it is two weeks of activations, one a minute.
const mostSkipped = 20_000

// skipped counts the activations after the start of a run, up to that of the next, which begin none: all but one.
func (r *runs) skipped(start time.Time) (n int) {
	next := r.after(start)
	for at := r.calendar.from(start.Add(1)); n <= mostSkipped && !at.After(next); at = r.calendar.from(at.Add(1)) {
		n++
	}
	return n - 1
}

// anchor is the start of a run, at or before an activation, that is known without the runs before it.
func (r *runs) anchor(activation time.Time) time.Time {
	free := max(1, r.length)
	if r.overlap == Queue { // a run that waited is over by up to its own length later
		free = max(1, 2*r.length)
	}
	border := r.border(activation)
	for {
		// A step over as much as is wanted: no pause of that length lies within.
		before := r.calendar.last(activation.Add(-free))
		first := r.calendar.from(before.Add(1))
		switch {
		case first.Before(border.Add(-r.frame())):
			return r.calendar.from(border)
		case first.Sub(before) >= free:
			return first
		}
		activation = before
	}
}
