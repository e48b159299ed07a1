package dispatch

import (
	"math/rand/v2"
	"testing"
	"time"

	"replayd/internal/limits"
	"replayd/internal/measure"
	"replayd/internal/schedule"
)

// Two workloads with random rows and sessions have too few lanes. The waiting rows never exceed the bound by more than
// one row per workload, each row leaves the sum once, and rows beyond the bound are dropped as overload.
func TestWaitingIsBounded(t *testing.T) {
	dropped := 0
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		most := 1 + rnd.IntN(2000)
		w := &Waiting{Most: int64(most)}
		var queues []*queue
		var tallies []*tally
		var flying [2][]*Row
		for range 2 {
			q, c := newQueueOf(Config{Lanes: 1 + rnd.IntN(3), MaxWait: time.Duration(rnd.IntN(2)) * time.Second, Waiting: w})
			if rnd.IntN(3) == 0 {
				q.Breaker = limits.NewBreaker(limits.Guard{Waiting: 1})
			}
			queues, tallies = append(queues, q), append(tallies, c)
		}
		for ms := range 400 {
			i := rnd.IntN(2)
			q, c := queues[i], tallies[i]
			switch rnd.IntN(8) {
			case 0:
				q.pause(rnd.IntN(3) == 0, at(ms))
			case 1:
				if q.Breaker != nil {
					q.judge(at(ms), limits.Load{Waiting: float64(rnd.IntN(3) / 2)}, nil)
				}
			case 2:
				if n := len(flying[i]); n > 0 {
					c.end(q, flying[i][n-1], rnd.IntN(4) > 0, at(ms))
					flying[i] = flying[i][:n-1]
				}
			default:
				r := planned(ms, ms, []string{"", "a", "b"}[rnd.IntN(3)], 0)
				r.Weight = 1 + rnd.IntN(100)
				q.add(q.loops[0], r)
			}
			q.fire(at(ms))
			_, taken := takeAll(q, at(ms))
			flying[i] = append(flying[i], taken...)
			if got := w.Bytes(); got > int64(most) || got < 0 {
				t.Fatalf("seed %d at %d ms: want at most %d bytes, got %d", seed, ms, most, got)
			}
			if err := c.balance(); err != nil {
				t.Fatalf("seed %d at %d ms: %v", seed, ms, err)
			}
		}
		for i, q := range queues {
			q.stop()
			dropped += tallies[i].dropped[measure.Overload]
		}
		if got := w.Bytes(); got != 0 {
			t.Fatalf("seed %d: want nothing counted at the end, got %d bytes", seed, got)
		}
	}
	if dropped == 0 {
		t.Error("nothing was ever dropped: the property was not put to the test")
	}
}

// Rows that a held-back reader reads late are neither missed nor dropped.
func TestReaderThatIsHeldBack(t *testing.T) {
	w := &Waiting{Most: 10}
	d := New(Config{Lanes: 1, HoldReader: true, Waiting: w})
	step := func(ms int, e Event) (verbs map[Verb]int) {
		verbs = map[Verb]int{}
		for _, a := range d.Step(Clock{at(ms), at(ms)}, e) {
			verbs[a.Kind]++
		}
		return verbs
	}
	room := func(ms, planned int) Room {
		r, _ := d.Room(d.Loop(0), at(planned), at(ms))
		return r
	}
	step(0, Event{Kind: LoopBegun, Plan: schedule.Loop{Start: epoch}})
	var rows []*Row
	for i := range 3 {
		r := planned(i, 10*i, "", 0)
		r.Weight = 6
		rows = append(rows, r)
	}
	sent := 0
	for _, r := range rows {
		sent += step(0, Event{Kind: RowRead, Loop: d.Loop(0), Row: r})[Send]
	}
	want(t, "the first is sent", sent, 1)
	want(t, "before anything waits", room(0, 30), Free)
	step(20, Event{Kind: Tick})
	want(t, "two wait", w.Bytes(), int64(12))
	want(t, "the next may be read", room(20, 30), Crowd)
	step(7000, Event{Kind: ReaderHeld})
	want(t, "the second is sent", step(7000, Event{Kind: Ended, Row: rows[0], Outcome: measure.OK, At: at(7000)})[Send], 1)
	want(t, "there is room", room(7000, 30), Free)
	late := planned(3, 30, "", 0)
	late.Weight = 6
	got := step(7000, Event{Kind: RowRead, Loop: d.Loop(0), Row: late})
	want(t, "the one that is read late comes due", got[Expect], 1)
	want(t, "and is not dropped", got[Drop], 0)
	want(t, "due", late.Due.At, at(30))
	want(t, "later rows that nobody came for are missed", step(9000, Event{Kind: RowRead, Loop: d.Loop(0), Row: planned(4, 7500, "", 0)})[Drop] > 0, true)
}
