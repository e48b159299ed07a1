package replay

import (
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/measure"
	"replayd/internal/schedule"
	"replayd/internal/trace"
)

// A turn with a gap is due when its turn comes: no sooner than its gap after the turn before was due, nor before that has
// ended. It is expected then, and late only by our own delay.
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

// A turn that is late waits out a pause and a stop as what it is: not due yet.
func TestGapOfALateTurn(t *testing.T) {
	gap := func(i int) *item {
		it := planned(i, 10*i, "u", 0)
		it.due.Gap = 10 * time.Millisecond
		return it
	}
	q, c := newQueue(9)
	for i := range 3 {
		q.add(q.loops[0], gap(i))
	}
	q.fire(at(0))
	_, flying := takeAll(q, at(0))
	q.fire(at(20))
	want(t, "expected", c.expected, 1)
	q.pause(true, at(21))
	q.pause(false, at(24))
	c.end(q, flying[0], true, at(25))
	_, flying = takeAll(q, at(25))
	want(t, "due", flying[0].due.At, at(25))
	c.end(q, flying[0], true, at(26))
	next, _ := q.next()
	want(t, "next", next, at(35))
	q.stop()
	want(t, "dropped", len(c.dropped), 0)
	want(t, "left", q.loops[0].open, 0)
	want(t, "balance", c.balance(), error(nil))

	q, c = newQueue(9)
	for i := range 3 {
		q.add(q.loops[0], gap(i))
	}
	q.fire(at(0))
	_, flying = takeAll(q, at(0))
	q.fire(at(20))
	c.end(q, flying[0], false, at(25))
	want(t, "dropped", c.dropped, map[measure.DropReason]int{measure.SessionFailed: 2})
	want(t, "balance", c.balance(), error(nil))
}

// One whose turn comes at the end is not due any more, whoever finds that out first.
func TestGapAtTheVeryEnd(t *testing.T) {
	q, c := newQueue(9)
	q.ends = at(25)
	for i := range 3 {
		it := planned(i, 10*i, "u", 0)
		it.due.Gap = time.Millisecond
		q.add(q.loops[0], it)
	}
	q.fire(at(20))
	_, flying := takeAll(q, at(20))
	c.end(q, flying[0], true, at(25))
	want(t, "expected", c.expected, 1)
	q.end()
	want(t, "left", q.loops[0].open, 0)
	want(t, "balance", c.balance(), error(nil))
}

// A late turn that would be due when nothing is due any more is not sent.
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

// Users by a plan: each waits users / rate between its turns.
func TestUsers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := schedule.FromRecords([]trace.Record{
			{Number: 0, InputTokens: 4, Session: "a"},
			{Number: 1, InputTokens: 4, Session: "a"},
			{Number: 2, InputTokens: 4, Session: "b"},
			{Number: 3, InputTokens: 4, Session: "b"},
		}, false)
		o := schedule.Options{Mode: schedule.Once, Arrival: schedule.Users, Users: 2, Rate: 1, Rows: 8}
		b := newBench(t, src, o, &fake{ttft: 100 * time.Millisecond}, nil)
		b.run(t, t.Context(), t.Context())
		want(t, "outcomes", b.kept.outcomes(), map[measure.Outcome]int{measure.OK: 8})
		start := b.kept.all[0].Timeline.Due
		for i, r := range b.kept.all {
			want(t, r.ID, r.Timeline.Due.Sub(start), time.Duration(i)*time.Second)
		}
	})
}
