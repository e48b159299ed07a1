package replay

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/measure"
	"replayd/internal/trace"
)

// arrivals has when the rows of a side reached its server, since the first.
func (c *compared) arrivals(side int) map[string]time.Duration {
	f := c.sides[side].fake
	name := [...]string{"b", "c"}[side]
	start := f.arrivals[name+"/0/0"]
	at := map[string]time.Duration{}
	for id, t := range f.arrivals {
		if row, ok := strings.CutPrefix(id, name+"/"); ok && strings.Count(row, "/") == 1 {
			at[row] = t.Sub(start)
		}
	}
	return at
}

// Rows of a session come after their parents on both sides: the slower answer decides, on both, and the next rows go at one instant.
func TestSidesPlaySessionsTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := source(trace.Record{Session: "s"}, trace.Record{Session: "s", Delay: time.Second}, trace.Record{Session: "s", Delay: time.Second})
		c := runSides(t, t.Context(), src, once, [2]*fake{{ttft: 100 * ms}, {ttft: 300 * ms}}, nil)
		for side := range c.sides {
			want(t, "arrivals", c.arrivals(side), map[string]time.Duration{"0/0": 0, "0/1": 1301 * ms, "0/2": 2602 * ms})
		}
	})
	synctest.Test(t, func(t *testing.T) {
		slow := func(id string) time.Duration {
			return map[string]time.Duration{"b/0/1": 5 * time.Second, "c/0/2": 6 * time.Second}[id]
		}
		c := runSides(t, t.Context(), source(forked()...), once, [2]*fake{{ttft: time.Second, slow: slow}, {ttft: time.Second, slow: slow}}, nil)
		for side := range c.sides {
			want(t, "arrivals", c.arrivals(side), map[string]time.Duration{
				"0/0": 0, "0/1": 1501 * ms, "0/2": 3001 * ms,
				"0/3": 17_502 * ms, "0/4": 19_503 * ms, "0/5": 20_000 * ms,
			})
		}
	})
}

// A side whose request fails drops the rest of the session. The other side goes on by itself.
func TestASideThatFailsASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad := &fake{ttft: 300 * ms, status: func(id string) int {
			if id == "c/0/1" {
				return 500
			}
			return 0
		}}
		src := source(trace.Record{Session: "s"}, trace.Record{Session: "s"}, trace.Record{Session: "s"}, trace.Record{Session: "s"})
		c := runSides(t, t.Context(), src, once, [2]*fake{{ttft: 100 * ms}, bad}, nil)
		want(t, "baseline", c.sides[0].kept.outcomes(), map[measure.Outcome]int{measure.OK: 4})
		want(t, "candidate", c.sides[1].kept.outcomes(), map[measure.Outcome]int{measure.OK: 1, measure.HTTP5xx: 1})
		want(t, "unsent", c.gone, [2][]string{nil, {"0/2 session_failed", "0/3 session_failed"}})
		at := c.arrivals(0)
		want(t, "the last row's wait", at["0/3"]-at["0/2"], 100*ms)
	})
}

// Neither a server that is down nor one that is slow stops the sessions of the other side for ever.
func TestSessionsBesideAServerThatIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := &fake{}
		down.refuse.Store(true)
		src := source(trace.Record{Session: "s"}, trace.Record{Session: "s"}, trace.Record{Session: "s"})
		c := runSides(t, t.Context(), src, once, [2]*fake{{ttft: 100 * ms}, down}, nil)
		want(t, "baseline", c.sides[0].kept.outcomes(), map[measure.Outcome]int{measure.OK: 3})
	})
}

// Random sessions with random answers, failures, lanes and a stop: both sides end, each row has one fate on a side, and rows that both
// sides could send went at one instant.
func TestSessionsOnTwoSides(t *testing.T) {
	lives := 150
	if testing.Short() {
		lives = 30
	}
	met := 0
	for seed := range lives {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(seed), 5))
			rows := sideRows(rng)
			var servers [2]*fake
			for side := range servers {
				most, failing := 1+rng.IntN(400), rng.IntN(3) == 0
				draw := func(id string) int {
					h := fnv.New32a()
					fmt.Fprint(h, seed, side, id)
					return int(h.Sum32() >> 8)
				}
				servers[side] = &fake{
					ttft: ms,
					slow: func(id string) time.Duration { return time.Duration(draw(id)%most) * ms },
					status: func(id string) int {
						if failing && draw(id+"!")%12 == 0 {
							return 500
						}
						return 0
					},
				}
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			if rng.IntN(4) == 0 {
				time.AfterFunc(time.Duration(1+rng.IntN(4000))*ms, stop)
			}
			lanes := [2]int{1 + rng.IntN(20), 1 + rng.IntN(20)}
			c := runSides(t, ctx, source(rows...), once, servers, func(side int, w *Workload) { w.Lanes, w.Drain = lanes[side], time.Minute })
			met += judgeSides(t, seed, c)
		})
	}
	if met < lives {
		t.Errorf("only %d rows after others were sent on both sides", met)
	}
}

// sideRows are sessions with parents, sessions of turns, and single rows.
func sideRows(rng *rand.Rand) []trace.Record {
	var rows []trace.Record
	offsets := []time.Duration{}
	for i := range 5 + rng.IntN(40) {
		r := trace.Record{Session: fmt.Sprint("s", rng.IntN(4)), Offset: time.Duration(i) * 20 * ms}
		switch r.Session {
		case "s0":
			r.Session = ""
		case "s1":
			r.Delay = time.Duration(rng.IntN(100)) * ms
		default:
			r.After = []trace.Edge{}
			for k := i - 1; k >= max(0, i-12); k-- {
				if rows[k].Session == r.Session && rng.IntN(2) == 0 {
					r.After = append(r.After, trace.Edge{Row: k, Wait: time.Duration(rng.IntN(2)*rng.IntN(200)) * ms})
				}
			}
			r.Floating = len(r.After) > 0 && rng.IntN(2) == 0
			var at time.Duration
			for _, e := range r.After {
				at = max(at, offsets[e.Row]+e.Wait)
			}
			if r.Offset = max(r.Offset, at); r.Floating {
				r.Offset = at
			}
		}
		offsets = append(offsets, r.Offset)
		rows = append(rows, r)
	}
	return rows
}

// judgeSides checks both ledgers, and returns how many rows after others were sent at one instant on both sides.
func judgeSides(t *testing.T, seed int, c *compared) (met int) {
	t.Helper()
	var sent [2]map[int]measure.Request
	failed := false
	for side, b := range c.sides {
		sent[side] = map[int]measure.Request{}
		for _, r := range b.kept.all {
			sent[side][r.Row] = r
			failed = failed || r.Outcome != measure.OK
		}
		if due, fates := len(c.due[side]), len(b.kept.all)+len(c.gone[side]); due != fates {
			t.Fatalf("seed %d: side %d: %d rows came due, %d have a fate", seed, side, due, fates)
		}
	}
	if failed || len(c.gone[0])+len(c.gone[1]) > 0 {
		return 0
	}
	for row, r := range sent[0] {
		other := sent[1][row]
		if r.Session == "" {
			continue
		}
		if !r.Timeline.Ready.Equal(other.Timeline.Ready) {
			t.Fatalf("seed %d: row %d: ready %v apart", seed, row, r.Timeline.Ready.Sub(other.Timeline.Ready))
		}
		met++
	}
	return met
}
