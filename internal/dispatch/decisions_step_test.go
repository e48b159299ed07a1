package dispatch_test

import (
	"math"
	"testing"
	"time"

	"replayd/internal/dispatch"
	"replayd/internal/limits"
	"replayd/internal/measure"
	"replayd/internal/schedule"
)

// A stepper drives a dispatcher with the events that package replay would send.
type stepper struct {
	*dispatch.Dispatcher
	*score
	closed  bool
	breaker *limits.Breaker
	looks   uint64
	drafts  map[*dispatch.Row]*draft
	rows    map[*draft]*dispatch.Row
	loops   map[int64]*dispatch.Loop
	length  time.Duration
	builds  *draft
	sleeps  time.Time
	isDone  bool
}

func newStepper(_ testing.TB, o terms, s *score) decider {
	c := dispatch.Config{
		Lanes: o.lanes, Closed: o.closed, HoldLanes: o.hold, DropLate: o.dropLate, MaxWait: o.maxWait, History: o.carry, Ahead: o.ahead,
		FollowsWall: o.followsWall && !o.closed, Breaker: limits.NewBreaker(o.guard), Budget: o.budget,
	}
	if o.budget != (limits.Budget{}) {
		c.Spending = limits.NewSpending()
	}
	st := &stepper{
		Dispatcher: dispatch.New(c), score: s, closed: o.closed, breaker: c.Breaker,
		drafts: map[*dispatch.Row]*draft{}, rows: map[*draft]*dispatch.Row{},
		loops: map[int64]*dispatch.Loop{}, length: o.duration,
	}
	st.tick()
	return st
}

func (st *stepper) tell(e dispatch.Event) {
	e.Seen = st.seen()
	st.step(e)
}

func (st *stepper) seen() (r dispatch.Reading) {
	if st.breaker == nil {
		return r
	}
	st.looks++
	r.Order = st.looks
	if st.breaker.Scraped() {
		r.Load, r.Err = st.load()
	}
	return r
}

func (st *stepper) step(e dispatch.Event) {
	for _, a := range st.Step(dispatch.Clock{Own: time.Now(), Wall: st.wall()}, e) {
		d := st.drafts[a.Row]
		switch a.Kind {
		case dispatch.Send:
			st.sent(d, a.Row.Planned, a.Row.Due.At, a.Row.Ready, a.Row.Waited)
		case dispatch.Build:
			st.builds = d
		case dispatch.Release:
			a.Row.Message.Body = nil
		case dispatch.Expect:
			st.expected()
			if a.Row.Clipped {
				st.clipped(d)
			}
		case dispatch.Filter:
			st.dropped(d, measure.Filtered)
		case dispatch.Drop:
			st.dropped(d, a.Reason)
		case dispatch.LoopEntered:
			if !st.closed { // loops of a closed plan may end at once; when they are entered depends on the events
				st.note("loop %d", a.Loop.Number)
			}
		case dispatch.LoopDone:
			if a.On {
				st.note("loop done")
			}
		case dispatch.GuardMoved:
			for i, open := range st.breaker.Opened() {
				st.guarded(limits.Limit(i), open)
			}
		case dispatch.Retired:
			st.allDue()
		case dispatch.Done:
			st.isDone = true
		case dispatch.WakeAt:
			st.sleeps = a.At
		}
	}
}

func (st *stepper) bound(from time.Time) {
	st.tell(dispatch.Event{Kind: dispatch.Bounds, At: from, Period: st.length})
}

func (st *stepper) begin(l schedule.Loop, period time.Duration) {
	st.tell(dispatch.Event{Kind: dispatch.LoopBegun, Plan: l, Period: period})
	st.loops[l.Number] = st.Loop(l.Number)
}

var rooms = map[dispatch.Room]room{
	dispatch.Free: free, dispatch.Full: full, dispatch.Early: early, dispatch.Over: enough,
	dispatch.OffPlan: anew, dispatch.Another: another,
}

func (st *stepper) room(n int64, planned time.Time) (room, time.Duration) {
	r, wait := st.Room(st.loops[n], planned, time.Now())
	return rooms[r], wait
}

// hand does the same as feedRow of package replay.
func (st *stepper) hand(d *draft) room {
	l := st.loops[d.due.Loop.Number]
	row := &dispatch.Row{Due: d.due, Seq: int64(d.n), Weight: 512, Filtered: d.filtered, Clipped: d.clipped}
	row.Size = 1<<10 + row.Weight + promptBytes(d.due.InputTokens)
	st.drafts[row], st.rows[d] = d, row
	e := dispatch.Event{Kind: dispatch.RowRead, Loop: l, Row: row}
	if st.closed || !row.Due.At.After(st.wall()) {
		e.Seen = st.seen()
	}
	if r, _ := st.Room(l, row.Due.At, time.Now()); r > dispatch.Early {
		return rooms[r]
	}
	st.step(e)
	return free
}

// promptBytes estimates the bytes of a prompt of words of the main list.
func promptBytes(tokens int) int {
	n := float64(max(1, tokens))
	return int(math.Ceil(min(16*n, meanWord*n+16*math.Sqrt(n))))
}

func (st *stepper) built(d *draft) {
	m := dispatch.Message{Err: d.err}
	if m.Err == nil {
		m.Body = []byte("x")
	}
	st.tell(dispatch.Event{Kind: dispatch.Built, Row: st.rows[d], Message: m})
}

func (st *stepper) build() *draft {
	if st.builds == nil {
		st.tell(dispatch.Event{Kind: dispatch.Poll}) // like the runner's builder
	}
	d := st.builds
	st.builds = nil
	return d
}

func (st *stepper) ended(d *draft) {
	st.tell(dispatch.Event{Kind: dispatch.Ended, Row: st.rows[d], Outcome: d.outcome, Usage: d.usage, Text: d.text, At: d.end})
}

func (st *stepper) pause(on bool) {
	if st.IsPaused() != on {
		st.tell(dispatch.Event{Kind: dispatch.Pause, On: on})
	}
}

// stop also resets the guard limits, because a stopped dispatcher sends nothing.
func (st *stepper) stop() {
	st.tell(dispatch.Event{Kind: dispatch.Stop})
	for l := range limits.NumLimits {
		st.guarded(l, false)
	}
}

func (st *stepper) loopRead(n int64) {
	st.tell(dispatch.Event{Kind: dispatch.LoopRead, Loop: st.loops[n]})
}

func (st *stepper) fed(failed bool) {
	st.tell(dispatch.Event{Kind: dispatch.FeedEnded, Failed: failed})
}

func (st *stepper) written(d *draft) {
	st.tell(dispatch.Event{Kind: dispatch.Written, Row: st.rows[d]})
}
func (st *stepper) look()               { st.tell(dispatch.Event{Kind: dispatch.Poll}) }
func (st *stepper) retire(at time.Time) { st.tell(dispatch.Event{Kind: dispatch.Retire, At: at}) }
func (st *stepper) tick()               { st.tell(dispatch.Event{Kind: dispatch.Tick}) }
func (st *stepper) wake() time.Time     { return st.sleeps }
func (st *stepper) done() bool          { return st.isDone }

func (st *stepper) rest(now time.Time) time.Duration {
	if st.breaker == nil {
		return time.Hour
	}
	return st.breaker.Wait(now)
}

// meanWord is the mean length of a word of the main list, in bytes.
const meanWord = 116677.0 / 13912
