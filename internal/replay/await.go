package replay

import (
	"log/slog"
	"time"

	"replayd/internal/measure"
	"replayd/internal/schedule"
)

// inLoop is the longest time without a due row that is not logged in a loop, so that a plan of few rows logs few lines.
// At the begin of a plan and between loops it is schedule.Soon.
const inLoop = 10 * time.Minute

// awaitNext publishes when the first row of the next loop is due, if no row is read for a while before it.
func (f *feed) awaitNext(l *reading, next schedule.Loop) {
	if f.r.closed || !next.Start.After(l.due.Add(schedule.Soon)) {
		return
	}
	if at, ok, err := f.r.w.Plan.NextDue(next, next.Start); err == nil && ok { // a fault is reported when the row is read
		f.await(at, schedule.Soon)
	}
}

// await publishes the planned instant of the row that the feed waits for, and logs it once if nothing is due for longer
// than a span. A zero instant is none.
func (f *feed) await(at time.Time, longest time.Duration) {
	if f.said.IsZero() {
		longest = schedule.Soon
	}
	f.r.mu.Lock()
	defer f.r.mu.Unlock()
	f.r.awaited = at
	f.r.showNext()
	wait := at.Sub(f.r.d.Planned(f.r.w.clock()))
	if at.IsZero() || wait <= longest || at.Equal(f.said) || f.r.phase == measure.Warmup {
		return
	}
	f.said = at
	f.r.log.say(slog.LevelInfo, "next request due at "+at.UTC().Format(time.RFC3339), "in", wait.Round(time.Second))
}
