package daemon

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/canary"
	"replayd/internal/schedule"
)

// A wall clock that is set, by a day or by 10 ms, forward or back, loses no pair of a comparison and stops none of its blocks. Rows that came due while the
// clock jumped are missed, and void for that alone.
func TestComparisonWhenTheClockIsSet(t *testing.T) {
	steps := []time.Duration{-24 * time.Hour, 10 * time.Millisecond, 24 * time.Hour, -10 * time.Millisecond, -700 * time.Millisecond}
	if testing.Short() {
		steps = steps[:2]
	}
	for _, align := range []string{"wall_clock", "start"} {
		for _, step := range steps {
			t.Run(align+" "+step.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w, _, conf := twoServers(t, 1)
					conf.Workloads[0].Repeat.Align = schedule.Align(align)
					var set atomic.Int64
					w.wall = func() time.Time { return time.Now().Add(time.Duration(set.Load())) }
					w.start(conf, true)
					pass(time.Minute)
					before := w.compared()
					pass(73 * time.Millisecond) // between two rows
					set.Store(int64(step))
					pass(time.Minute)
					after := w.compared()
					pairs := after.Judgment.Pairs
					if !after.Epoch.Equal(before.Epoch) || pairs.Judged < before.Judgment.Pairs.Judged+570 {
						t.Errorf("from %+v to %+v", before.Judgment.Pairs, pairs)
					}
					if n := after.Judgment.Blocks - before.Judgment.Blocks; n < 28 {
						t.Errorf("%d blocks in a minute, want 28 or more", n)
					}
					pairs = pairs.Less(before.Judgment.Pairs)
					if missed := pairs.Voids[canary.VoidMissed]; pairs.Void != missed || missed > 80 || (step.Abs() < time.Second || align == "start") && missed > 0 {
						t.Errorf("void: %+v", pairs)
					}
					w.end()
					last := w.compared().Counters.Totals()
					if sent := last.Requests[canary.Baseline].Sent; last.Open() != 0 || last.Requests[canary.Candidate].Sent != sent {
						t.Errorf("in the end: %+v", last)
					}
				})
			})
		}
	}
}
