package replay

import (
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/measure"
	"replayd/internal/schedule"
	"replayd/internal/trace"
)

// A turn with a gap is due no sooner than its gap after the turn before was due, and not before that turn has ended. It
// is expected from then on, and its lateness is only the delay that replayd adds.
func TestGap(t *testing.T) {
	for name, c := range map[string]struct {
		ttft []time.Duration // of the turns
		due  []time.Duration
	}{
		"in time":    {[]time.Duration{time.Second, time.Second, time.Second}, []time.Duration{0, 10 * time.Second, 20 * time.Second}},
		"late once":  {[]time.Duration{13 * time.Second, time.Second, time.Second}, []time.Duration{0, 13 * time.Second, 23 * time.Second}},
		"late twice": {[]time.Duration{13 * time.Second, 12 * time.Second, time.Second}, []time.Duration{0, 13 * time.Second, 25 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var turns []trace.Record
				for i := range 3 {
					turns = append(turns, trace.Record{Offset: time.Duration(i) * 10 * time.Second, Session: "u", Turn: i, Gap: 10 * time.Second})
				}
				f := &fake{}
				turn := 0
				f.asked = func(id string) {
					if id != "" {
						f.ttft = c.ttft[turn]
						turn++
					}
				}
				b := newBench(t, source(turns...), once, f, nil)
				time.AfterFunc(lead+11*time.Second, func() { // planned 1 s ago
					late := c.due[1] > 11*time.Second
					want(t, "expected", b.counter(t, "replayd_requests_expected_total", ""), map[bool]float64{false: 2, true: 1}[late])
					want(t, "waiting", b.counter(t, "replayd_requests_waiting", ""), 0.0)
				})
				b.run(t, t.Context(), t.Context())
				start := b.kept.all[0].Timeline.Planned
				for i, r := range b.kept.all {
					want(t, r.ID+" turn", r.Turn, i)
					want(t, r.ID+" planned", r.Timeline.Planned.Sub(start), time.Duration(i)*10*time.Second)
					want(t, r.ID+" due", r.Timeline.Due.Sub(start), c.due[i])
					want(t, r.ID+" arrived", f.arrivals[r.ID].Sub(start), c.due[i])
					want(t, r.ID+" late", r.Lateness(), time.Duration(0))
					want(t, r.ID+" session wait", r.SessionWait(), time.Duration(0))
				}
				want(t, "expected", b.counter(t, "replayd_requests_expected_total", ""), 3.0)
			})
		})
	}
}

// A late turn whose due time falls after the end of the duration is not sent.
func TestGapAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turns []trace.Record
		for i := range 5 {
			turns = append(turns, trace.Record{Offset: time.Duration(i) * time.Second, Session: "u", Gap: time.Second})
		}
		b := newBench(t, source(turns...), once, &fake{ttft: 1500 * time.Millisecond}, func(w *Workload) { w.Duration = 4 * time.Second })
		b.run(t, t.Context(), t.Context())
		want(t, "outcomes", b.kept.outcomes(), map[measure.Outcome]int{measure.OK: 3}) // at 0 s, 1.5 s and 3 s
		want(t, "expected", b.counter(t, "replayd_requests_expected_total", ""), 3.0)
	})
}

// With arrival users, each user starts a turn every users / rate seconds.
func TestUsers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := schedule.FromRecords([]trace.Record{
			{Number: 0, InputTokens: 4, Session: "a"},
			{Number: 1, InputTokens: 4, Session: "a"},
			{Number: 2, InputTokens: 4, Session: "b"},
			{Number: 3, InputTokens: 4, Session: "b"},
		}, false)
		o := schedule.Options{
			Pattern: schedule.Pattern{Arrival: schedule.Users, Users: 2, Rate: 1},
			Repeat:  schedule.Repeat{Mode: schedule.Once}, Rows: 8,
		}
		b := newBench(t, src, o, &fake{ttft: 100 * time.Millisecond}, nil)
		b.run(t, t.Context(), t.Context())
		want(t, "outcomes", b.kept.outcomes(), map[measure.Outcome]int{measure.OK: 8})
		start := b.kept.all[0].Timeline.Due
		for i, r := range b.kept.all {
			want(t, r.ID, r.Timeline.Due.Sub(start), time.Duration(i)*time.Second)
		}
	})
}
