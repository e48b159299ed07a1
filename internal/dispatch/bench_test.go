package dispatch

import (
	"testing"

	"replayd/internal/measure"
	"replayd/internal/schedule"
)

// BenchmarkRow measures all steps of one row: read, built, due, written, ended.
func BenchmarkRow(b *testing.B) {
	d := New(Config{Lanes: 9, Ahead: 1 << 20})
	d.Step(Clock{epoch, epoch}, Event{Kind: LoopBegun, Plan: schedule.Loop{Start: epoch}})
	message, ms := Message{Body: []byte("x")}, 0
	step := func(e Event) { d.Step(Clock{at(ms), at(ms)}, e) }
	b.ReportAllocs()
	for b.Loop() {
		row := &Row{Due: schedule.Due{At: at(ms + 40), Loop: schedule.Loop{Start: epoch}}}
		step(Event{Kind: RowRead, Loop: d.Loop(0), Row: row})
		step(Event{Kind: Built, Row: row, Message: message})
		ms += 40
		step(Event{Kind: Tick})
		step(Event{Kind: Written, Row: row})
		step(Event{Kind: Ended, Row: row, Outcome: measure.OK, At: at(ms)})
	}
}
