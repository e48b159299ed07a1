package schedule

import (
	"fmt"
	"time"

	"replayd/internal/fault"
)

// ladder has divisors of a day, so that PromQL's offset by an hour or a day meets the same place of the trace.
var ladder = []time.Duration{
	1 * time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 20 * time.Minute, 30 * time.Minute,
	1 * time.Hour, 2 * time.Hour, 3 * time.Hour, 4 * time.Hour, 6 * time.Hour, 8 * time.Hour, 12 * time.Hour,
}

// fit sets the loop's length, given its own length, or 0 if that is the time to its last row. The last row lies inside its loop:
// strictly before the border at which the next loop begins, or at that border if a loop includes its end instead of its start.
func (p *Plan) fit(natural time.Duration) (f fault.List) {
	p.every = p.length
	switch p.o.Mode {
	case Once:
		return nil
	case Cron:
		c, faults := newCalendar(p.o.Cron, p.o.Timezone)
		p.runs = &runs{calendar: c, overlap: p.o.Overlap, length: p.length}
		return faults
	}
	length, speed := "the length of the trace", fmt.Sprintf(" at speed %v", p.o.Speed)
	if !p.o.Timed() {
		length, speed = "the time to the last row", ""
	}
	least := p.length
	want := fmt.Sprintf("at least %v, %s", least, length)
	if !p.o.byGaps() {
		want = fmt.Sprintf("more than %v, %s", least, length)
		least++
	}
	switch p.every = p.o.Every; {
	case p.every == 0 && natural > 0 && p.o.Align == Start:
		p.every = natural
	case p.every == 0:
		p.every = shortest(least)
	case p.every < least:
		f.Add("repeat.every", "want %s%s, got %v", want, speed, p.every)
	}
	f.If(p.o.Offset <= -p.every || p.o.Offset >= p.every,
		"repeat.offset", "want less than every (%v), either way, got %v", p.every, p.o.Offset)
	return f
}

// shortest returns the first step of the ladder of at least least, or else the fewest whole days.
func shortest(least time.Duration) time.Duration {
	for _, step := range ladder {
		if step >= least {
			return step
		}
	}
	const day = 24 * time.Hour
	return (least + day - 1) / day * day
}
