package dispatch

import (
	"iter"
	"time"

	"replayd/internal/limits"
)

// IsPaused reports whether an operator has paused the workload.
func (d *Dispatcher) IsPaused() bool { return d.paused }

// Leaves reports whether no more rows come due: the dispatcher was stopped, or a successor has taken over.
func (d *Dispatcher) Leaves() bool { return d.stopped || d.retired }

// IsStopped reports whether the dispatcher has stopped sending.
func (d *Dispatcher) IsStopped() bool { return d.stopped }

// Reserved returns the bytes reserved for messages that are not sent yet.
func (d *Dispatcher) Reserved() int { return d.bytes }

// Weight returns the bytes of the rows that were read and are not due yet.
func (d *Dispatcher) Weight() int { return d.weight }

// Playing returns the loop of the row that came due last, before that the first loop that was begun; nil: no loop was begun.
func (d *Dispatcher) Playing() *Loop { return d.playing }

// Played returns a planned instant: all rows before it have come due. After the wall clock was set back, the instant can be in the future.
func (d *Dispatcher) Played() time.Time { return d.played }

// NextDue returns the planned instant at which the next of the rows that were read is due, or may be sent after its wait;
// zero: there is none, as in a closed loop.
func (d *Dispatcher) NextDue() (at time.Time) {
	if d.closed != nil {
		return at
	}
	if r := d.upcoming.first; r != nil {
		at = r.loop.clock.Planned(r.Due.At)
	}
	if r := d.delayed.front(); r != nil {
		at = earlier(at, r.loop.clock.Planned(r.Ready))
	}
	return at
}

// A Room tells the feed whether it may read the next row.
type Room uint8

// Answers of Dispatcher.Room.
const (
	Free    Room = iota // the feed may read
	Full                // enough rows were read; ReadOn tells when there may be room again
	Crowd               // too much waits in memory: an event ReaderHeld says that the reader waits for that reason
	Early               // the row is due too far in the future
	Over                // nothing comes due any more
	OffPlan             // the plan must be entered again at the present instant
	Another             // later rows belong to the successor
)

// An open loop's rows are read at most this far ahead of the clock and at most this many.
const (
	aheadTime = 5 * time.Second
	aheadRows = 1024
)

// Room says whether a row that a loop plans for an instant may be read, and of one that is too early, how long that will be so.
func (d *Dispatcher) Room(l *Loop, planned, now time.Time) (Room, time.Duration) {
	d.runs(now)
	at := now
	if d.closed == nil {
		at = l.clock.At(planned)
	}
	switch {
	case d.hasEnded(at), d.exhausted && d.heldUntil.IsZero(): // a reader that was held back comes later than the end
		return Over, 0
	case d.closed != nil && d.retired:
		return Another, 0
	case d.closed != nil && d.full():
		return Full, 0
	case d.closed != nil:
		return Free, 0
	case d.offPlan:
		return OffPlan, 0
	case d.beyond(planned):
		return Another, 0
	case d.HoldReader && d.Waiting.full(), d.weight >= PoolBytes:
		return Crowd, 0
	case at.Sub(now) > aheadTime:
		return Early, at.Sub(now) - aheadTime
	case d.upcoming.n >= aheadRows:
		d.sated = true
		return Full, 0
	}
	return Free, 0
}

// Soon yields the rows that come due within a span from now, and says how many of them may be sent at once now. While
// none may be sent it yields none.
func (d *Dispatcher) Soon(span time.Duration, now time.Time) (rows iter.Seq[*Row], free int) {
	free = d.free
	if d.Breaker.State() == limits.HalfOpen {
		free = min(free, 1)
	}
	return func(yield func(*Row) bool) {
		if d.paused || d.Breaker.State() == limits.Open {
			return
		}
		until := now.Add(span)
		for r := d.upcoming.first; r != nil && !r.Due.At.After(until); r = d.upcoming.after(r) {
			if !r.Filtered && !yield(r) {
				return
			}
		}
	}, free
}

// HasTurns reports whether there are rows without a planned instant of their write: rows of a closed loop, rows that wait for a lane,
// and turns of sessions.
func (d *Dispatcher) HasTurns() bool {
	if d.closed != nil || d.waiting.n > 0 || d.blocked.n > 0 || d.delayed.Len() > 0 {
		return true
	}
	for _, l := range d.loops {
		if l.undue.n > 0 {
			return true
		}
	}
	return false
}
