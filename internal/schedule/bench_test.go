package schedule

import (
	"testing"
	"time"
)

// What it costs to find a run: as usual, and where runs leave no pause, so that the search goes back for two weeks and then
// forward to where now is, at the end of a week.
func BenchmarkLoopOfCron(b *testing.B) {
	now := utc("2026-03-08 23:59:00")
	for name, p := range map[string]*Plan{
		"daily":  cronPlan(b, "0 3 * * *", "Europe/Berlin", Skip, time.Hour),
		"yearly": cronPlan(b, "0 3 29 2 *", "Europe/Berlin", Skip, time.Hour),
		"skip":   cronPlan(b, "* * * * *", "Europe/Berlin", Skip, time.Minute+1),
		"queue":  cronPlan(b, "* * * * *", "Europe/Berlin", Queue, time.Minute+1),
		"long":   cronPlan(b, "* * * * *", "Europe/Berlin", Queue, 100*day),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				p.Loop(time.Time{}, now)
			}
		})
		b.Run(name+"/next", func(b *testing.B) {
			l := p.Loop(time.Time{}, now)
			for b.Loop() {
				p.Next(l, l.Start)
			}
		})
	}
}
