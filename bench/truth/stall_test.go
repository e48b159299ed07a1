//go:build bench && linux

package truth_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"replayd/bench/lab"
	"replayd/bench/rig"
	"replayd/test/outside"
)

// A stalled run is an open loop of stallRate requests/s, each of stallTokens chunks, 10 ms apart after the TTFT.
// Requests that arrive while the server stalls see the stall. It begins and ends 10 ms from the nearest instant at
// which a chunk is due, so that a few ms more or less move no chunk to the other side.
const (
	stallRate   = 50
	stallTokens = 5
	stallITL    = 10 * time.Millisecond
)

// TestStall compares replayd's figures for a server that stalls with the values
// that follow from the instants of the stall. With a lane for each request, both
// TTFT and TTFT from due show the stall; with 8 lanes, only TTFT from due does.
func TestStall(t *testing.T) {
	run, after, length := 12*time.Second, 3*time.Second, 3*time.Second
	if outside.Knob(t, "BENCH_FULL", false, strconv.ParseBool) {
		run, after, length = time.Minute, 15*time.Second, 10*time.Second
	}
	steal := rig.WatchSteal(t)
	table := &lab.Table{
		Title: fmt.Sprintf("A server that stops for %v in %v of %d requests/s; what follows from that, and what replayd says, ms:", length, run, stallRate),
		Head:  []string{"lanes", "", "mean", "", "%", "p50", "", "%", "p99", "", "%", "max", "", "%", fmt.Sprintf("over %v", length/2), ""},
	}
	cases := []stalled{{lanes: 1000}, {lanes: 8}}
	t.Run("runs", func(t *testing.T) { // ends when both have ended
		for i := range cases {
			t.Run(fmt.Sprint(cases[i].lanes), func(t *testing.T) {
				t.Parallel()
				cases[i].play(t, run, after, length)
			})
		}
	})
	steal.Stop()
	if t.Failed() {
		return
	}
	for _, c := range cases {
		c.judge(t, table, length)
	}
	table.Note("With a lane for each request, one due at t waits for its first chunk until the end of the stall where t + TTFT lies in it. " +
		"With 8 it waits for the end of the request 8 before it too: the queue grows with the stall and drains at 8 requests a service time.")
	rig.Results(t, "stall", steal, table)
}

type stalled struct {
	lanes    int
	records  []record
	stamps   map[string]lab.Stamped
	from, to int64         // of the stall, ns since the Unix epoch
	late     time.Duration // the most that the test itself woke late in the stall
}

func (c *stalled) play(t *testing.T, run, after, length time.Duration) {
	t.Helper()
	n := int(run.Seconds() * stallRate)
	s := rig.Serve(t, rig.Options{}, "--ttft", ttft.String(), "--itl", stallITL.String(),
		"--stall-after", after.String(), "--stall-for", length.String())
	woken := watchWaking(t.Context())
	path := runRecords(t, s, traceOf(n, 1, stallTokens, time.Second/stallRate), run+time.Minute, "--lanes", fmt.Sprint(c.lanes))
	c.late = woken()
	c.records, c.stamps = readRecords(t, path, n, stallTokens), s.Stamps(t)
	matched(t, c.records, c.stamps, stallTokens)
	// The server counts from the first request that it read.
	for _, a := range c.stamps {
		if c.from == 0 || a.Read < c.from {
			c.from = a.Read
		}
	}
	c.from += int64(after)
	c.to = c.from + int64(length)
	for id, a := range c.stamps {
		for _, ns := range a.Chunks {
			if ns >= c.from && ns < c.to {
				t.Errorf("%s: want no chunk in the stall, got one %v into it", id, time.Duration(ns-c.from))
			}
		}
	}
}

// watchWaking returns the most by which a timer of this process was late: the error of every sleeper on this machine.
func watchWaking(ctx context.Context) (most func() time.Duration) {
	ctx, stop := context.WithCancel(ctx)
	var late time.Duration
	var running sync.WaitGroup
	running.Go(func() {
		const every = 5 * time.Millisecond
		for ctx.Err() == nil {
			at := time.Now().Add(every)
			timer := time.NewTimer(every)
			select {
			case now := <-timer.C:
				late = max(late, now.Sub(at), time.Since(at))
			case <-ctx.Done():
				timer.Stop()
			}
		}
	})
	return func() time.Duration {
		stop()
		running.Wait()
		return late
	}
}

// A wait is what one request should see, in ns.
type wait struct{ write, first int64 }

// analytic computes the waits from the due instants and the stall: a request is written when it is due and a lane is
// free, in order; a chunk is sent at its instant or at the end of a stall; a lane is free after the last chunk.
func (c *stalled) analytic() []wait {
	free := make([]int64, c.lanes) // when each lane is free; the lane taken first is free first
	waits := make([]wait, len(c.records))
	for i, r := range c.records {
		at := max(r.Due, free[i%c.lanes])
		waits[i] = wait{at, c.until(at + int64(ttft))}
		free[i%c.lanes] = c.until(at + int64(ttft+(stallTokens-1)*stallITL))
	}
	return waits
}

// judge expects replayd's figures to be the analytic ones. The tolerance covers the largest error of a request by the
// server's own stamps, the latest wake-up of a sleeper on this machine, and a hundredth of the stall.
func (c *stalled) judge(t *testing.T, table *lab.Table, length time.Duration) {
	t.Helper()
	var want, got [2]lab.Sample // TTFT, TTFT from due, ms
	var server [2]int64         // how far its stamps are from the analytic values
	ms := func(ns int64) float64 { return float64(ns) / 1e6 }
	for i, w := range c.analytic() {
		r := c.records[i]
		a := c.stamps[r.ID]
		for j, d := range []int64{(a.Chunks[0] - a.Arrival) - (w.first - w.write), a.Chunks[0] - w.first} {
			server[j] = max(server[j], d, -d)
		}
		want[0], got[0] = append(want[0], ms(w.first-w.write)), append(got[0], ms(r.TTFT))
		want[1], got[1] = append(want[1], ms(w.first-r.Due)), append(got[1], ms(r.FromDue))
	}
	for i, name := range []string{"TTFT", "TTFT from due"} {
		tolerance := ms(server[i] + int64(c.late) + int64(length)/100)
		cells := []string{fmt.Sprint(c.lanes), name}
		for what, of := range []func(lab.Sample) float64{
			lab.Sample.Mean, func(s lab.Sample) float64 { return s.Quantile(0.5) }, func(s lab.Sample) float64 { return s.Quantile(0.99) }, lab.Sample.Max,
		} {
			w, g := of(want[i]), of(got[i])
			if d := g - w; d > tolerance || d < -tolerance {
				t.Errorf("%d lanes, %s, %s: want %.1f ± %.1f ms, got %.1f", c.lanes, name, []string{"mean", "p50", "p99", "max"}[what], w, tolerance, g)
			}
			cells = append(cells, lab.Number(w), lab.Number(g), fmt.Sprintf("%+.2f", 100*(g-w)/w))
		}
		over := func(s lab.Sample, bound float64) (n int) {
			for _, v := range s {
				if v > bound {
					n++
				}
			}
			return n
		}
		bound := ms(int64(length / 2))
		w, g := over(want[i], bound), over(got[i], bound)
		if least, most := over(want[i], bound+tolerance), over(want[i], bound-tolerance); g < least || g > most {
			t.Errorf("%d lanes, %s over %v ms: want %d to %d requests, got %d", c.lanes, name, bound, least, most, g)
		}
		table.Add(append(cells, fmt.Sprint(w), fmt.Sprint(g))...)
	}
	table.Note("%d lanes: at the server no request was further than %.1f ms from its analytic TTFT, and %.1f from due; a sleeper of the test was woken %.1f late at most.",
		c.lanes, ms(server[0]), ms(server[1]), ms(int64(c.late)))
}

// until returns when the server may send a chunk that is due at ns.
func (c *stalled) until(ns int64) int64 {
	if ns >= c.from && ns < c.to {
		return c.to
	}
	return ns
}
