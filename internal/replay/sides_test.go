package replay

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/measure"
	"replayd/internal/schedule"
)

// compared holds both runners of a comparison.
type compared struct {
	sides [2]*bench
	order []string // X-Request-Ids in the order in which the servers saw them
	due   [2][]string
	gone  [2][]string // unsent rows
}

// runSides plays a plan against two servers until both runners have ended or ctx is done.
func runSides(t *testing.T, ctx context.Context, src schedule.Source, o schedule.Options, servers [2]*fake, change func(side int, w *Workload)) *compared {
	t.Helper()
	c := &compared{}
	pacer, shared := NewPacer(NewTimers()), NewSides()
	pace, endPace := context.WithCancel(context.Background())
	var paced, running sync.WaitGroup
	paced.Go(func() { pacer.Run(pace) })
	var mu sync.Mutex
	for side, f := range servers {
		f.asked = func(id string) {
			if strings.Count(id, "/") == 2 {
				mu.Lock()
				defer mu.Unlock()
				c.order = append(c.order, id)
			}
		}
		c.sides[side] = newBench(t, src, o, f, func(w *Workload) {
			w.Name, w.SaltName = [...]string{"b", "c"}[side], "w"
			w.Pacer, w.Sides, w.Candidate = pacer, shared, side == 1
			w.Due = func(d *schedule.Due, _ time.Time) { c.due[side] = append(c.due[side], d.ID()) }
			w.Unsent = func(d *schedule.Due, why measure.DropReason, _ time.Time) {
				c.gone[side] = append(c.gone[side], d.ID()+" "+string(why))
			}
			if change != nil {
				change(side, w)
			}
		})
	}
	for _, b := range c.sides {
		running.Go(func() { b.run(t, ctx, t.Context()) })
	}
	running.Wait()
	endPace()
	paced.Wait()
	return c
}

// Both servers get every row at its instant with equal bytes, and the side that is written first changes.
func TestSidesSendAtOneInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rows = 200
		c := runSides(t, t.Context(), every(rows, 7*time.Millisecond), once, [2]*fake{{ttft: time.Millisecond}, {ttft: 50 * time.Millisecond}}, nil)
		a, b := c.sides[0].fake, c.sides[1].fake
		for i := range rows {
			one, other := fmt.Sprint("b/0/", i), fmt.Sprint("c/0/", i)
			if a.arrivals[one].IsZero() || !a.arrivals[one].Equal(b.arrivals[other]) {
				t.Fatalf("row %d came at %v and %v", i, a.arrivals[one], b.arrivals[other])
			}
			if string(a.bodies[one]) != string(b.bodies[other]) {
				t.Fatalf("row %d: bodies %s and %s", i, a.bodies[one], b.bodies[other])
			}
		}
		first := 0
		for i := 0; i+1 < len(c.order); i += 2 {
			if strings.HasPrefix(c.order[i], "b/") {
				first++
			}
		}
		if len(c.order) != 2*rows || first < rows/4 || first > rows*3/4 {
			t.Errorf("of %d requests the baseline's was first in %d of %d pairs", len(c.order), first, rows)
		}
		want(t, "rows that came due", c.due[0], c.due[1])
		want(t, "their number", len(c.due[0]), rows)
	})
}

// A side that is down, slow to answer its first probe, or without lanes does not move the instants of the other one.
func TestSidesDoNotDelayEachOther(t *testing.T) {
	const rows = 40
	for _, c := range []struct {
		name   string
		server func() *fake
		change func(w *Workload)
		unsent int // rows of the second side
	}{
		{"down", func() *fake { f := &fake{}; f.refuse.Store(true); return f }, nil, 0},
		{"never answers", func() *fake { return &fake{ttft: time.Hour} }, func(w *Workload) { w.Lanes, w.Overload = 1, Drop }, rows - 1},
		{"slow to connect", func() *fake { return &fake{dials: 900 * time.Millisecond} }, nil, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				time.AfterFunc(30*time.Second, stop)
				pair := runSides(t, ctx, every(rows, 100*time.Millisecond), once, [2]*fake{{ttft: time.Millisecond}, c.server()}, func(side int, w *Workload) {
					if w.Drain = time.Second; side == 1 && c.change != nil {
						c.change(w)
					}
				})
				all := pair.sides[0].kept.all
				slices.SortFunc(all, func(x, y measure.Request) int { return x.Row - y.Row })
				want(t, "requests of the sound side", len(all), rows)
				for i, r := range all {
					if at := r.Timeline.Write.Sub(all[0].Timeline.Planned); r.Outcome != measure.OK || at != time.Duration(i)*100*time.Millisecond {
						t.Errorf("row %d: %s, written at %v", i, r.Outcome, at)
					}
				}
				want(t, "rows that came due", pair.due[1], pair.due[0])
				want(t, "unsent", len(pair.gone[1]), c.unsent)
			})
		})
	}
}

// Where one side never begins, the other one begins alone, and its plan is the one that a late side joins.
func TestSidesMeet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sides, begin := NewSides(), time.Now()
		got, err := sides.meet(t.Context(), baseline, begin.Add(time.Second))
		if err != nil || time.Since(begin) != meetWait {
			t.Fatalf("%v after %v", err, time.Since(begin))
		}
		late, err := sides.meet(t.Context(), candidate, time.Now().Add(time.Hour))
		if err != nil || !late.Equal(got) || time.Since(begin) != meetWait || !got.After(time.Now()) {
			t.Errorf("the late side has the epoch %v, the first one %v; %v", late, got, err)
		}
		ctx, stop := context.WithCancel(t.Context())
		stop()
		if _, err := NewSides().meet(ctx, baseline, begin); err == nil {
			t.Error("a stop does not end the wait")
		}
	})
}
