package schedule

import (
	"math"
	"time"
)

// A Loop is one pass over the trace, or as many rows as the plan takes of it.
type Loop struct {
	// Floor((start − offset) / every) with align wall_clock, the whole minutes from the Unix epoch to the start with Cron, from 0
	// with align start, with once and in a closed plan. Activations are minutes and queued runs are longer than that, so that each start has a
	// number of its own, higher than those before; the two hours that daylight saving gives one name are two here.
	Number int64
	Start  time.Time // the instant of trace offset 0 (of the window's From), or before the first gap of a rate
	Pass   int64     // of a closed plan: how often the source came round in the loops before this one; else 0
}

// Loop returns the loop that holds now; before the epoch, the first one; with Cron between two runs the next one, whose
// Start is after now. With align wall_clock and Cron it lies on the wall clock and the epoch does not matter (instants must lie
// in the years 1678 to 2262). A closed plan has it begin with its first loop, from the epoch. Its Start has the wall reading that the plan says, and now's monotonic reading, if it has
// one, less the time that passed between.
func (p *Plan) Loop(epoch, now time.Time) Loop {
	if p.o.Mode == Cron {
		return run(p.runs.at(now.Round(0)), now)
	}
	var border int64 // what a loop holds of the instant at which it begins, in nanoseconds less one
	if p.o.byGaps() {
		border = 1
	}
	if p.FollowsWall() {
		since := now.UnixNano() - int64(p.o.Offset) - border
		number, position := floorDiv(since, int64(p.every))
		return Loop{Number: number, Start: now.Add(-time.Duration(position + border))}
	}
	position := now.Round(0).Sub(epoch.Round(0)) // Round(0) takes the monotonic readings off
	var number int64
	if p.o.Mode == Loops && position > 0 && !p.Closed() {
		number = (int64(position) - border) / int64(p.every)
	}
	return Loop{Number: number, Start: now.Add(time.Duration(number)*p.every - position)}
}

// run is the loop that begins at an instant of the wall clock as now's clocks show it.
func run(start, now time.Time) Loop {
	number, _ := floorDiv(start.Unix(), 60)
	return Loop{Number: number, Start: now.Add(start.Sub(now.Round(0)))}
}

// Rows are read ahead, so now may lie before the loop that is read: by more than its period and a minute, and the clock
// was set back.
const readAhead = time.Minute

// Next returns the loop after l, false when there is none. In a closed plan it has the same Start, and begins when l has no
// more rows. With align wall_clock and Cron the border is read anew from now's
// wall clock, so that what the clock was set by is made good there; a clock that was set back by more than a loop gives
// the loop that follows the one that now is in. In each mode, when l's successor is over, it is the loop that now is in
// (with Cron, between two runs, the next one), and those between are left out.
func (p *Plan) Next(l Loop, now time.Time) (Loop, bool) {
	switch {
	case p.o.Mode == Once || p.Closed() && p.rows == 0:
		return Loop{}, false
	case p.Closed():
		passes := 1
		if p.window > 0 {
			passes = (p.rows + p.window - 1) / p.window
		}
		return Loop{Number: l.Number + 1, Start: l.Start, Pass: l.Pass + int64(passes)}, true
	case p.o.Mode == Cron:
		return p.nextRun(l, now), true
	case p.o.Align == Start:
		passed := max(1, p.Loop(l.Start, now).Number)
		return Loop{Number: l.Number + passed, Start: l.Start.Add(time.Duration(passed) * p.every)}, true
	}
	start := l.Start.Add(p.every)
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

// mostCounted bounds the work of counting runs to tens of milliseconds. One a minute, they last ten weeks.
const mostCounted = 100_000

// LeftOut returns how many loops lie between l and the one that Next gave, with Cron up to mostCounted.
func (p *Plan) LeftOut(l, next Loop) (n int64) {
	if p.o.Mode != Cron {
		return max(0, next.Number-l.Number-1)
	}
	end := next.Start.Round(0)
	for start := p.runs.after(l.Start.Round(0)); n < mostCounted && start.Before(end); start = p.runs.after(start) {
		n++
	}
	return n
}

// nextRun is Next with Cron.
func (p *Plan) nextRun(l Loop, now time.Time) Loop {
	wall, start := now.Round(0), l.Start.Round(0)
	next := p.runs.after(start)
	switch period := next.Sub(start); {
	case next.Sub(wall) > 2*period+readAhead:
		held := p.runs.at(wall)
		if held.Equal(start) { // l is yet to come, and no clock was set
			break
		}
		if next = held; !held.After(wall) {
			next = p.runs.after(held)
		}
	case p.runs.dueBefore(next, wall):
		next = p.runs.at(wall)
	}
	return run(next, now)
}

// Position is the trace time that is played at an instant of a loop: From at its start, and at rest after its last row.
// Where rows come at a rate it is the time since the loop's start; in a closed plan it stays 0.
func (p *Plan) Position(l Loop, t time.Time) time.Duration {
	position := p.traceTime(min(t.Sub(l.Start), p.length))
	if p.o.Timed() {
		position += p.o.From
	}
	return position
}

// traceTime converts wall time since a loop's start, at most the loop's length, into trace time since From, at least 0.
func (p *Plan) traceTime(wall time.Duration) time.Duration {
	return time.Duration(math.Round(float64(max(0, wall)) * p.o.Speed))
}

// floorDiv divides toward minus infinity: before 1970, too, a position counts from its loop's start.
func floorDiv(a, b int64) (quotient, rest int64) {
	quotient, rest = a/b, a%b
	if rest < 0 {
		quotient, rest = quotient-1, rest+b
	}
	return quotient, rest
}
