package replay

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/measure"
	"replayd/internal/schedule"
	"replayd/internal/trace"
)

const ms = time.Millisecond

// forked is a session that forks after its first row and joins again. The second row's answer takes 5 s, each other one 1 s.
func forked() []trace.Record {
	edge := func(row int, wait time.Duration) trace.Edge { return trace.Edge{Row: row, Wait: wait} }
	rows := []trace.Record{
		{After: []trace.Edge{}},
		{After: []trace.Edge{edge(0, 500*ms)}, Offset: 500 * ms, Floating: true},
		{After: []trace.Edge{edge(0, 2000*ms)}, Offset: 2000 * ms, Floating: true},
		{After: []trace.Edge{edge(1, 10_000*ms), edge(2, 250*ms)}, Offset: 10_500 * ms, Floating: true},
		{After: []trace.Edge{edge(3, 1000*ms)}, Offset: 11_500 * ms, Floating: true},
		{After: []trace.Edge{edge(3, 0)}, Offset: 20_000 * ms},
	}
	for i := range rows {
		rows[i].Session, rows[i].Turn = "s", i
	}
	return rows
}

func slowSecond(id string) time.Duration {
	if strings.HasSuffix(id, "/2") {
		return 4 * time.Second
	}
	return 0
}

// Rows fork and join at exact instants: due at the latest of the parents' ends and the waits after them, and at a row's own instant where
// that is later. They are expected and measured from there.
func TestForkAndJoin(t *testing.T) {
	for name, c := range map[string]struct {
		o   schedule.Options
		due []time.Duration // by row, from the start of the loop
	}{
		"as recorded": {once, []time.Duration{0, 1500 * ms, 3000 * ms, 12_500 * ms, 14_500 * ms, 20_000 * ms}},
		"at a speed": {schedule.Options{
			Pattern: schedule.Pattern{Speed: 20},
			Repeat:  schedule.Repeat{Mode: schedule.Once},
		}, []time.Duration{0, 1500 * ms, 3000 * ms, 12_500 * ms, 14_500 * ms, 13_500 * ms}},
		"waits scaled": {
			schedule.Options{
				Pattern: schedule.Pattern{Speed: 20}, Repeat: schedule.Repeat{Mode: schedule.Once},
				TurnDelay: &schedule.TurnDelay{Scale: 0.5},
			},
			[]time.Duration{0, 1250 * ms, 2000 * ms, 7250 * ms, 8750 * ms, 8250 * ms},
		},
		"waits limited": {
			schedule.Options{
				Pattern: schedule.Pattern{Speed: 20}, Repeat: schedule.Repeat{Mode: schedule.Once},
				TurnDelay: &schedule.TurnDelay{Scale: 1, Max: time.Second},
			},
			[]time.Duration{0, 1500 * ms, 2000 * ms, 7250 * ms, 9250 * ms, 8250 * ms},
		},
		"waits longer": {
			schedule.Options{Repeat: schedule.Repeat{Mode: schedule.Once}, TurnDelay: &schedule.TurnDelay{Scale: 2}},
			[]time.Duration{0, 2000 * ms, 5000 * ms, 23_000 * ms, 26_000 * ms, 24_000 * ms},
		},
		// The parents before the window count as ended at their instants.
		"from the middle": {
			schedule.Options{Repeat: schedule.Repeat{Mode: schedule.Once}, From: 10 * time.Second},
			[]time.Duration{3: 500 * ms, 4: 2500 * ms, 5: 10_000 * ms},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, source(forked()...), c.o, &fake{ttft: time.Second, slow: slowSecond}, nil)
				b.run(t, t.Context(), t.Context())
				slices.SortFunc(b.kept.all, func(x, y measure.Request) int { return x.Row - y.Row })
				first := b.kept.all[0]
				start := first.Timeline.Due.Add(-c.due[first.Row])
				want(t, "requests", len(b.kept.all), 6-first.Row)
				for _, r := range b.kept.all {
					want(t, r.ID+" due", r.Timeline.Due.Sub(start), c.due[r.Row])
					want(t, r.ID+" arrived", b.fake.arrivals[r.ID].Sub(start), c.due[r.Row])
					want(t, r.ID+" late", r.Lateness(), time.Duration(0))
					want(t, r.ID+" session wait", r.SessionWait(), time.Duration(0))
					ttft, _ := r.TTFT()
					due, _ := r.TTFTFromDue()
					want(t, r.ID+" from due", due, ttft)
				}
				want(t, "expected", b.counter(t, "replayd_requests_expected_total", ""), float64(6-first.Row))
				want(t, "loops completed", b.counter(t, "replayd_loops_completed_total", ""), 1.0)
			})
		})
	}
}

// A session's time by part is exact. An answer takes 1 s to its first token and 1 s from there; that to the third row 4 s longer.
//
// The graph's path has rows 0, 1, 3 and 5: the joining row waits for row 1 until 14.5 s and for row 2 until 10.25 s, and the last row for
// its own instant at 20 s. In a closed loop of one lane no row has an instant. There row 5 takes the lane until 18.5 s, and row 4 ends
// last, 1 s late. The second turn waits for its delay until 2.25 s, the third for its instant at 20 s.
func TestTimeOfSessions(t *testing.T) {
	closed := schedule.Options{
		Pattern: schedule.Pattern{Arrival: schedule.Concurrency},
		Repeat:  schedule.Repeat{Mode: schedule.Once},
	}
	turns := []trace.Record{
		{Session: "s"}, {Session: "s", Offset: time.Second, Delay: 250 * ms}, {Session: "s", Offset: 20 * time.Second, Delay: 250 * ms},
	}
	for name, c := range map[string]struct {
		rows  []trace.Record
		o     schedule.Options
		lanes int
		whole bool
		spent measure.SessionTime
	}{
		"a graph": {forked(), once, 4, false, measure.SessionTime{(500 + 10_000 + 3500) * ms, 0, 4000 * ms, 4000 * ms}},
		"in one piece": { // the whole answer comes with its first token
			forked(), once, 4, true, measure.SessionTime{(500 + 10_000 + 6500) * ms, 0, 4000 * ms, 0},
		},
		"one lane": {forked(), closed, 1, false, measure.SessionTime{(500 + 10_000 + 1000) * ms, 1000 * ms, 4000 * ms, 4000 * ms}},
		"turns":    {turns, once, 4, false, measure.SessionTime{(250 + 15_750) * ms, 0, (1000 + 1000 + 5000) * ms, 3000 * ms}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var ended []measure.Session
				b := newBench(t, source(c.rows...), c.o, &fake{ttft: time.Second, itl: 500 * ms, slow: slowSecond}, func(w *Workload) {
					w.Lanes, w.Whole = c.lanes, c.whole
					w.Session = func(s *measure.Session) { ended = append(ended, *s) }
				})
				b.run(t, t.Context(), t.Context())
				if len(ended) != 1 {
					t.Fatalf("want one session, got %+v", ended)
				}
				want(t, "time", ended[0].Time, c.spent)
				want(t, "requests", ended[0].Requests, len(c.rows))
				want(t, "begun", b.counter(t, "replayd_sessions_begun_total", ""), 1.0)
				want(t, "ok", b.counter(t, "replayd_sessions_total", "ok"), 1.0)
				want(t, "makespan", b.counter(t, "replayd_session_time_seconds_total", ""), c.spent.Sum().Seconds())
			})
		})
	}
}

// A row is not expected while it waits for its parents.
func TestExpectedWithItsParents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, source(forked()...), once, &fake{ttft: time.Second, slow: slowSecond}, nil)
		time.AfterFunc(lead+12*time.Second, func() { // the fourth row could have been due 1.5 s ago
			want(t, "expected", b.counter(t, "replayd_requests_expected_total", ""), 3.0)
			want(t, "waiting", b.counter(t, "replayd_requests_waiting", ""), 0.0)
		})
		b.run(t, t.Context(), t.Context())
	})
}

// Rows after a failed row are dropped, over any number of edges and each row once. Rows beside it go on.
func TestFailedParents(t *testing.T) {
	for failed, c := range map[string]struct{ ok, dropped int }{"w/0/0": {0, 5}, "w/0/2": {2, 3}, "w/0/3": {3, 2}, "w/0/4": {5, 0}} {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{ttft: time.Second, status: func(id string) int {
				if id == failed {
					return 500
				}
				return 0
			}}
			b := newBench(t, source(forked()...), once, f, nil)
			b.run(t, t.Context(), t.Context())
			outcomes := map[measure.Outcome]int{measure.HTTP5xx: 1}
			if c.ok > 0 {
				outcomes[measure.OK] = c.ok
			}
			want(t, failed+" outcomes", b.kept.outcomes(), outcomes)
			want(t, failed+" dropped", b.counter(t, "replayd_requests_dropped_total", string(measure.SessionFailed)), float64(c.dropped))
			want(t, failed+" expected", b.counter(t, "replayd_requests_expected_total", ""), 6.0)
		})
	}
}

// A row over the length limits ends as soon as it is due, for the rows after it.
func TestFilteredParents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rows := forked()
		rows[2].InputTokens = 100
		b := newBench(t, source(rows...), once, &fake{ttft: time.Second}, func(w *Workload) { w.MaxInput = 50 })
		b.run(t, t.Context(), t.Context())
		at := b.sinceFirst()
		want(t, "the join", at["w/0/3"], 12_500*ms)
		want(t, "outcomes", b.kept.outcomes(), map[measure.Outcome]int{measure.OK: 5})
		want(t, "filtered", b.counter(t, "replayd_requests_dropped_total", string(measure.Filtered)), 1.0)
	})
}

// A session may outlive its loop: the next loop begins at its instant, and a loop is over when its last row has ended.
func TestSessionsOutliveTheirLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := schedule.Options{Repeat: schedule.Repeat{Mode: schedule.Loops, Align: schedule.Start, Every: 10 * time.Second}}
		src := source(
			trace.Record{Session: "s", After: []trace.Edge{}},
			trace.Record{Session: "s", After: []trace.Edge{{Row: 0}}, Floating: true},
		)
		b := newBench(t, src, o, &fake{ttft: 30 * time.Second}, func(w *Workload) { w.Rows = 4 })
		// The third loop has no rows, and is over at once.
		for at, over := range map[time.Duration]float64{59 * time.Second: 1, 61 * time.Second: 2, 69 * time.Second: 2} {
			time.AfterFunc(lead+at, func() { want(t, "loops over", b.counter(t, "replayd_loops_completed_total", ""), over) })
		}
		b.run(t, t.Context(), t.Context())
		at := b.sinceFirst()
		for id, due := range map[string]time.Duration{"w/0/0": 0, "w/1/0": 10 * time.Second, "w/0/1": 30 * time.Second, "w/1/1": 40 * time.Second} {
			want(t, id, at[id], due)
		}
	})
}

// A closed loop gives a lane to a row when its parents have ended and the waits are over.
func TestParentsInAClosedLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, source(forked()...), closedOnce, &fake{ttft: time.Second, slow: slowSecond}, func(w *Workload) { w.Lanes = 2 })
		b.run(t, t.Context(), t.Context())
		at := b.sinceFirst()
		for id, due := range map[string]time.Duration{
			"w/0/0": 0, "w/0/1": 1500 * ms, "w/0/2": 3000 * ms, "w/0/3": 12_500 * ms, "w/0/5": 13_500 * ms, "w/0/4": 14_500 * ms,
		} {
			want(t, id, at[id], due)
		}
	})
}

// A row that names its parents is kept without what it sends, which is read again when its message is built. Where that fails, the row is
// dropped as invalid, and what comes after it too.
func TestLightRows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rows := forked()
		texts := make([]string, len(rows))
		for i := range rows {
			rows[i].Text = strings.Repeat("a", 1000) + string(rune('0'+i))
			texts[i] = rows[i].Text
		}
		src := source0(rows...)
		src.Reread = func(r trace.Record) (trace.Record, error) {
			if r.Text != "" {
				t.Errorf("row %d was kept whole", r.Number)
			}
			if r.Number == 3 {
				return r, errors.New("no such line")
			}
			r.Text = texts[r.Number]
			return r, nil
		}
		b := newBench(t, src, once, &fake{ttft: time.Second}, nil)
		b.run(t, t.Context(), t.Context())
		want(t, "outcomes", b.kept.outcomes(), map[measure.Outcome]int{measure.OK: 3})
		for i, id := range []string{"w/0/0", "w/0/1", "w/0/2"} {
			if !strings.Contains(string(b.fake.bodies[id]), texts[i]) {
				t.Errorf("%s: want its own text, got %s", id, b.fake.bodies[id])
			}
		}
		want(t, "dropped", b.counter(t, "replayd_requests_dropped_total", string(measure.Invalid)), 3.0)
	})
}

// Waits that are shorter than recorded, or a plan slower than recorded, change the order in which rows are read: each row of a file is due
// at its exact instant all the same.
func TestWaitsDecideTheOrder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.jsonl")
	if err := os.WriteFile(path, []byte(`{"schema":"replayd.sessions.v1","block_size":16}
{"row":0,"timestamp":0,"input_length":20,"output_length":3,"hash_ids":[1],"session_id":"a","after":[]}
{"row":1,"input_length":20,"output_length":3,"hash_ids":[1],"session_id":"a","after":[{"row":0,"wait":7200000}]}
{"row":2,"input_length":20,"output_length":3,"hash_ids":[1],"session_id":"a","after":[{"row":1,"wait":400}]}
{"row":3,"timestamp":60000,"input_length":20,"output_length":3,"session_id":"b","after":[]}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		o   schedule.Options
		due []time.Duration
	}{
		"limited": {schedule.Options{TurnDelay: &schedule.TurnDelay{Scale: 1, Max: time.Second}}, []time.Duration{0, 2000 * ms, 3400 * ms, 60_000 * ms}},
		"scaled":  {schedule.Options{TurnDelay: &schedule.TurnDelay{Scale: 0.001}}, []time.Duration{0, 8200 * ms, 9200*ms + ms*2/5, 60_000 * ms}},
		"slow": {
			schedule.Options{Pattern: schedule.Pattern{Speed: 0.1}, TurnDelay: &schedule.TurnDelay{Scale: 1, Max: time.Minute}},
			[]time.Duration{0, 61_000 * ms, 62_400 * ms, 600_000 * ms},
		},
		"fast": {schedule.Options{Pattern: schedule.Pattern{Speed: 20}}, []time.Duration{0, 7_201_000 * ms, 7_202_400 * ms, 3000 * ms}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c.o.Mode, c.o.Arrival = schedule.Once, schedule.Exact
				f, err := trace.Open(t.Context(), path, trace.Options{Wait: func(wait time.Duration) time.Duration {
					o := c.o
					o.Speed = cmp.Or(o.Speed, 1)
					return o.Wait(wait)
				}})
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				b := newBench(t, schedule.FromFile(f), c.o, &fake{ttft: time.Second}, nil)
				b.run(t, t.Context(), t.Context())
				slices.SortFunc(b.kept.all, func(x, y measure.Request) int { return x.Row - y.Row })
				want(t, "requests", len(b.kept.all), 4)
				for _, r := range b.kept.all {
					want(t, r.ID+" due", r.Timeline.Due.Sub(b.kept.all[0].Timeline.Due), c.due[r.Row])
					want(t, r.ID+" late", r.Lateness(), time.Duration(0))
				}
			})
		})
	}
}

// A limit of the time ends sessions, too: requests that their parents allow later are never due, and the session is cut.
func TestDurationBoundsSessions(t *testing.T) {
	for name, o := range map[string]schedule.Options{
		"as recorded": {Pattern: schedule.Pattern{Speed: 1}, Repeat: schedule.Repeat{Mode: schedule.Once}, Duration: 2 * time.Second},
		"at a rate": {
			Pattern: schedule.Pattern{Arrival: schedule.Constant, RateOf: schedule.Starts, Rate: 1000},
			Repeat:  schedule.Repeat{Mode: schedule.Once}, Rows: 6, Duration: 2 * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, source(forked()...), o, &fake{ttft: time.Second, slow: slowSecond}, func(w *Workload) { w.LoopTime = o.Duration })
				b.run(t, t.Context(), t.Context())
				want(t, "requests", len(b.kept.all), 2)
				want(t, "expected", b.counter(t, "replayd_requests_expected_total", ""), 2.0)
				want(t, "cut", b.counter(t, "replayd_sessions_total", "cut"), 1.0)
				want(t, "loops", b.counter(t, "replayd_loops_completed_total", ""), 1.0)
			})
		})
	}
}
