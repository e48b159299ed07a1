package dispatch

import (
	"errors"
	"testing"
	"time"

	"replayd/internal/measure"
)

// A server that fails every request alike is asked more and more slowly, down to one request a second of a lane, from
// write to write. The first other outcome ends that.
func TestClosedQueueSlowsDown(t *testing.T) {
	q, _ := newClosedQueue(1)
	for i := range 400 {
		q.add(q.loops[0], planned(i, 0, "", 0))
	}
	now, slowed := 0, 0
	fail := func(o measure.Outcome, takes int) (gap int) {
		q.fire(at(now))
		_, flying := takeAll(q, at(now))
		want(t, "sent", len(flying), 1)
		wrote := now
		now += takes
		q.count()
		q.ended(at(now), Event{Kind: Ended, Row: flying[0], Outcome: o, Write: at(wrote), At: at(now)})
		for _, a := range q.out {
			if a.Kind == Slowed {
				slowed++
			}
		}
		if next, ok := q.next(); ok && q.free == 0 {
			now = int(next.Sub(at(0)) / time.Millisecond)
		}
		return now - wrote
	}
	for range alikeFree {
		want(t, "gap at first", fail(measure.HTTP4xx, 1), 1)
	}
	want(t, "told at first", slowed, 0)
	for i := range 100 {
		want(t, "gap", fail(measure.HTTP4xx, 1), 10*(i+1))
	}
	want(t, "told", slowed, 1)
	want(t, "gap at the bound", fail(measure.HTTP4xx, 1), 1000)
	want(t, "gap of a slow failure", fail(measure.HTTP4xx, 1500), 1500)
	want(t, "gap of another", fail(measure.HTTP5xx, 1), 1)
	for range alikeFree {
		fail(measure.HTTP5xx, 1)
	}
	want(t, "gap of the other", fail(measure.HTTP5xx, 1), 20)
	want(t, "gap after a good one", fail(measure.OK, 1), 1)
	want(t, "gap then", fail(measure.HTTP5xx, 1), 1)
	want(t, "told again", slowed, 2)
}

// In a loop of sessions a failure holds the place of its session, not only its lane: other lanes are free. A row without
// a session is one of a single request. Its place is free at once after a good end, or one that replayd made itself.
func TestPlaceOfAFailureIsHeld(t *testing.T) {
	for _, session := range []string{"", "s"} {
		for o, gap := range map[measure.Outcome]int{
			measure.OK: 1, measure.Cancelled: 1, measure.Aborted: 1, measure.HTTP4xx: 1001, measure.ServerAbort: 1001,
			measure.ConnectFailed: 1001,
		} {
			q, _ := newQueueOf(Config{Lanes: 99, Closed: true, Sessions: 1})
			for i := range 3 {
				name := session
				if name != "" {
					name += string(rune('0' + i))
				}
				row := planned(i, 0, name, 0)
				row.Due.First, row.Due.Last = true, true
				q.add(q.loops[0], row)
			}
			q.fire(at(0))
			_, flying := takeAll(q, at(0))
			want(t, "sent", len(flying), 1)
			q.count()
			q.now = at(1)
			q.ended(at(1), Event{Kind: Ended, Row: flying[0], Outcome: o, Write: at(0), At: at(1)})
			for now := 1; ; now++ {
				q.fire(at(now))
				if _, next := takeAll(q, at(now)); len(next) > 0 {
					want(t, "instant of the next after "+string(o)+" in session "+session, now, gap)
					break
				}
			}
		}
	}
}

// A lane pauses after a row whose message cannot be built, as after a refused connection. Otherwise a closed loop would
// run through a trace of such rows at once.
func TestClosedQueueInvalid(t *testing.T) {
	q, c := newClosedQueue(1)
	for i := range 3 {
		r := planned(i, 0, "", 0)
		if i < 2 {
			r.Message.Err = errors.New("no such model")
		}
		q.add(q.loops[0], r)
	}
	for i := range 2 {
		q.fire(epoch.Add(time.Duration(i) * connectPause))
		rows, _ := takeAll(q, epoch.Add(time.Duration(i)*connectPause))
		want(t, "sent", rows, []int(nil))
		want(t, "dropped", c.dropped, map[measure.DropReason]int{measure.Invalid: i + 1})
	}
	next, _ := q.next()
	want(t, "next", next, epoch.Add(2*connectPause))
	q.fire(next)
	rows, _ := takeAll(q, next)
	want(t, "sent", rows, []int{2})
	want(t, "balance", c.balance(), error(nil))
}

// A row that a pause held back comes due once, when the pause ends, also where its message is built later.
func TestClosedQueueDueOnceAfterAHold(t *testing.T) {
	q, c := newClosedQueue(1)
	r := planned(0, 0, "", 0)
	r.Message.Body = nil
	q.add(q.loops[0], r)
	q.fire(at(0))
	q.pause(true, at(5))
	takeAll(q, at(10))
	q.pause(false, at(30))
	q.fire(at(30))
	takeAll(q, at(30))
	q.built(r, Message{Body: []byte("x")})
	rows, _ := takeAll(q, at(40))
	want(t, "sent", rows, []int{0})
	want(t, "due", r.Due.At, at(30))
	want(t, "balance", c.balance(), error(nil))
}
