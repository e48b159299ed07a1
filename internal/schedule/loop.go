package schedule

import (
	"math"
	"time"
)

// A Loop is one pass over the trace.
type Loop struct {
	Number int64     // floor((start − offset) / every) with phase wall, from 0 with phase start and once
	Start  time.Time // the instant of trace offset 0 (of the window's From)
}

// Loop returns the loop that holds now; before the epoch, the first one. With phase wall it lies on the wall clock
// and the epoch does not matter (instants must lie in the years 1678 to 2262). Its Start has the wall reading that
// the plan says, and now's monotonic reading less the time that passed between.
func (p *Plan) Loop(epoch, now time.Time) Loop {
	if p.o.Mode == Loops && p.o.Phase == Wall {
		since := now.UnixNano() - int64(p.o.Offset)
		number, position := floorDiv(since, int64(p.every))
		return Loop{Number: number, Start: now.Add(-time.Duration(position))}
	}
	position := now.Round(0).Sub(epoch.Round(0)) // Round(0) takes the monotonic readings off
	var number int64
	if p.o.Mode == Loops && position > 0 {
		number = int64(position / p.every)
	}
	return Loop{Number: number, Start: now.Add(time.Duration(number)*p.every - position)}
}

// Next returns the loop after l, false when there is none. With phase wall the border is read anew from now's wall
// clock, so that what the clock was set by is made good there; a clock that was set by more than a loop gives the
// loop that follows the one that now is in, or, when l's successor is over, the one that now is in.
func (p *Plan) Next(l Loop, now time.Time) (Loop, bool) {
	if p.o.Mode == Once {
		return Loop{}, false
	}
	start := l.Start.Add(p.every)
	if p.o.Phase == Start {
		return Loop{Number: l.Number + 1, Start: start}, true
	}
	// Rows are read ahead, so now may lie before l; by more than a loop and a minute, and the clock was set back.
	const readAhead = time.Minute
	switch ahead := start.Round(0).Sub(now.Round(0)); {
	case ahead > 2*p.every+readAhead:
		held := p.Loop(time.Time{}, now)
		return Loop{Number: held.Number + 1, Start: held.Start.Add(p.every)}, true
	case ahead <= -p.every:
		return p.Loop(time.Time{}, now), true
	default:
		return Loop{Number: l.Number + 1, Start: now.Add(ahead)}, true
	}
}

// Position is the trace time that is played at an instant of a loop: From at its start, and at rest after its last row.
func (p *Plan) Position(l Loop, t time.Time) time.Duration {
	return p.o.From + p.traceTime(min(t.Sub(l.Start), p.length))
}

// traceTime converts wall time since a loop's start, at most the loop's length, into trace time since From, at least 0.
func (p *Plan) traceTime(wall time.Duration) time.Duration {
	return time.Duration(math.Round(float64(max(0, wall)) * p.o.Speed))
}

// floorDiv divides towards minus infinity: before 1970, too, a position counts from its loop's start.
func floorDiv(a, b int64) (quotient, rest int64) {
	quotient, rest = a/b, a%b
	if rest < 0 {
		quotient, rest = quotient-1, rest+b
	}
	return quotient, rest
}
