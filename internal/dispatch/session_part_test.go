package dispatch

import (
	"testing"
	"time"

	"replayd/internal/measure"
	"replayd/internal/schedule"
)

// A session of which a part was not played is cut: its first rows lie before the window or the begin, or are skipped, or its last ones
// come after the window or the number of requests. Rows over the length limits are no part of the replay.
func TestSessionsInPart(t *testing.T) {
	type rows struct{ first, last, filterFirst, filterLast bool }
	for name, c := range map[string]struct {
		rows rows
		want measure.SessionOutcome
	}{
		"whole":             {rows{first: true, last: true}, measure.SessionOK},
		"without the first": {rows{last: true}, measure.SessionCut},
		"without the last":  {rows{first: true}, measure.SessionCut},
		"neither":           {rows{}, measure.SessionCut},
		"first filtered":    {rows{first: true, last: true, filterFirst: true}, measure.SessionOK},
		"last filtered":     {rows{first: true, last: true, filterLast: true}, measure.SessionOK},
	} {
		for _, graph := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				d := New(Config{Lanes: 9})
				var begun int
				var ended []*measure.Session
				var flying []*Row
				step := func(ms int, e Event) {
					for _, a := range d.Step(Clock{at(ms), at(ms)}, e) {
						switch a.Kind {
						case SessionBegun:
							begun++
						case SessionEnded:
							ended = append(ended, a.Session)
						case Send:
							flying = append(flying, a.Row)
						}
					}
				}
				step(0, Event{Kind: LoopBegun, Plan: schedule.Loop{Start: epoch}, At: epoch})
				for i := range 4 {
					r := planned(i, 0, "s", 0)
					if r.Due.First, r.Due.Last = i == 0, i == 3; graph {
						r.Due.After = edgesTo(i)
					}
					r.Filtered = i == 0 && c.rows.filterFirst || i == 3 && c.rows.filterLast
					if i == 0 && !c.rows.first || i == 3 && !c.rows.last {
						continue
					}
					step(0, Event{Kind: RowRead, Loop: d.Loop(0), Row: r})
				}
				step(0, Event{Kind: LoopRead, Loop: d.Loop(0)})
				for ms := 10; len(flying) > 0; ms += 10 {
					r := flying[0]
					flying = flying[1:]
					step(ms, Event{Kind: Ended, Row: r, Outcome: measure.OK, Write: at(ms - 5), First: at(ms - 1), At: at(ms)})
				}
				want(t, "begun", begun, 1)
				if len(ended) != 1 || ended[0].Outcome != c.want {
					t.Errorf("want one session that ended %s, got %+v", c.want, ended)
				}
			})
		}
	}
}

// After the wall clock was set back by more than a loop the same loop is read again. Its sessions that had ended are begun anew, and each
// ends once.
func TestSessionsOfALoopThatIsEnteredAgain(t *testing.T) {
	d := New(Config{Lanes: 9, FollowsWall: true})
	begun, ended := 0, 0
	var flying []*Row
	step := func(now Clock, e Event) {
		for _, a := range d.Step(now, e) {
			switch a.Kind {
			case SessionBegun:
				begun++
			case SessionEnded:
				ended++
			case Send:
				flying = append(flying, a.Row)
			}
		}
		if ended > begun {
			t.Fatalf("%d sessions begun, %d ended", begun, ended)
		}
	}
	read := func(now Clock, number int, session string) {
		r := planned(number, 1000, session, 0)
		r.Due.First, r.Due.Last = true, true
		step(now, Event{Kind: RowRead, Loop: d.Loop(0), Row: r})
	}
	plan := Event{Kind: LoopBegun, Plan: schedule.Loop{Start: epoch}, At: epoch, Period: 10 * time.Second}
	now := Clock{at(0), at(0)}
	step(now, plan)
	read(now, 0, "a") // it is in flight when the loop is entered again, so that the loop is kept
	second := planned(1, 1000, "b", 0)
	second.Due.First = true
	step(now, Event{Kind: RowRead, Loop: d.Loop(0), Row: second})
	now = Clock{at(1000), at(1000)}
	step(now, Event{Kind: Tick})
	step(now, Event{Kind: Ended, Row: flying[1], Outcome: measure.OK, At: at(1000)})
	now = Clock{at(1500), at(-60_000)} // set back by more than a loop
	step(now, Event{Kind: Tick})
	want(t, "astray", d.offPlan, true)
	want(t, "ended: the session whose rows are read again", ended, 1)
	now = Clock{at(2000), at(500)}
	step(now, plan)
	read(now, 1, "b")
	now = Clock{at(2500), at(1000)}
	step(now, Event{Kind: Tick})
	want(t, "sent again", len(flying), 3)
	step(now, Event{Kind: LoopRead, Loop: d.Loop(0)})
	step(now, Event{Kind: Ended, Row: flying[2], Outcome: measure.OK, At: now.Own})
	step(now, Event{Kind: Ended, Row: flying[0], Outcome: measure.OK, At: now.Own})
	want(t, "begun", begun, 3)
	want(t, "ended", ended, 3)
}

// A loop that was entered after its start counts as completed if a row of it was played.
func TestLoopsThatAreJoined(t *testing.T) {
	for _, c := range []struct {
		from, rows int
		done       bool
	}{{0, 0, true}, {0, 1, true}, {500, 1, true}, {500, 0, false}} {
		d := New(Config{Lanes: 1})
		done := false
		step := func(ms int, e Event) {
			for _, a := range d.Step(Clock{at(ms), at(ms)}, e) {
				switch a.Kind {
				case Send:
					e = Event{Kind: Ended, Row: a.Row, Outcome: measure.OK, At: at(ms)}
				case LoopDone:
					done = a.On
				}
			}
			if e.Kind == Ended {
				for _, a := range d.Step(Clock{at(ms), at(ms)}, e) {
					done = done || a.Kind == LoopDone && a.On
				}
			}
		}
		step(0, Event{Kind: LoopBegun, Plan: schedule.Loop{Start: epoch}, At: at(c.from)})
		for i := range c.rows {
			step(0, Event{Kind: RowRead, Loop: d.Loop(0), Row: planned(i, 600, "", 0)})
		}
		if l := d.Loop(0); l != nil {
			step(0, Event{Kind: LoopRead, Loop: l})
		}
		step(600, Event{Kind: Tick})
		want(t, "completed", done, c.done)
	}
}
