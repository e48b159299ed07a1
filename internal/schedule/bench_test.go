package schedule

import (
	"testing"
	"time"
)

// BenchmarkLoopOfCron measures finding a run, in usual plans and in plans without a pause between runs. Without a
// pause the search goes back for two weeks and then forward to now, which is at the end of a week.
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

// BenchmarkArrivals measures skipping a row, as a process does that starts in the middle of a loop.
func BenchmarkArrivals(b *testing.B) {
	ramp := []Stage{{Rate: 100, Over: 1000 * time.Hour}}
	for name, o := range map[string]Options{
		"constant": {Pattern: Pattern{Arrival: Constant, Rate: 100}}, "ramp": {Pattern: Pattern{Arrival: Constant, Stages: ramp}},
		"poisson": {Pattern: Pattern{Arrival: Poisson, Rate: 100}}, "gamma of 0.5": {Pattern: Pattern{
			Arrival:    Gamma,
			Burstiness: 0.5, Rate: 100,
		}},
		"gamma of 2": {Pattern: Pattern{Arrival: Gamma, Burstiness: 2, Rate: 100}},
	} {
		o.Mode = Once
		a := plan(b, untimed(1), o).arrivals()
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				a.next()
			}
		})
	}
}
