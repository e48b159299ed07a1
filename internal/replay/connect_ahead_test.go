package replay

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/measure"
	"replayd/internal/openai"
	"replayd/internal/schedule"
	"replayd/internal/trace"
)

// A forecast counts what is in flight at each instant: those of now end evenly within the time that a request takes.
func TestForecast(t *testing.T) {
	type due = []time.Duration
	for name, c := range map[string]struct {
		flying int
		took   time.Duration
		due    due
		want   []int
	}{
		"nothing has ended yet":          {2, 0, due{0, 10, 20, 1e9}, []int{3, 4, 5, 6}},
		"one after the other":            {0, 10, due{0, 11, 22}, []int{1, 1, 1}},
		"that overlap":                   {0, 10, due{0, 5, 10, 12}, []int{1, 2, 3, 3}},
		"at one instant":                 {0, 10, due{3, 3, 3}, []int{1, 2, 3}},
		"while those of now end":         {4, 100, due{0, 25, 50, 99, 101}, []int{5, 5, 5, 5, 4}},
		"overdue, such as closed loops'": {1, 10, due{-1e9, -1e9}, []int{2, 3}},
	} {
		f := forecast{flying: c.flying, took: c.took}
		var got []int
		for _, at := range c.due {
			got = append(got, f.next(at))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: want %v, got %v", name, c.want, got)
		}
	}
}

// poisson has rows at random instants.
func poisson(n int, rate float64) schedule.Source {
	draw := rand.New(rand.NewPCG(1, 2))
	rows := make([]trace.Record, n)
	at := 0.0
	for i := range rows {
		at -= math.Log(1-draw.Float64()) / rate
		rows[i].Offset = time.Duration(at * float64(time.Second))
	}
	return source(rows...)
}

// An open loop has few connections beyond its requests in flight, opens none for nothing, and has each request find one. After the
// last row that is due within idle all are closed.
func TestConnectionsOfAnOpenLoop(t *testing.T) {
	for name, c := range map[string]struct {
		rows   schedule.Source
		beyond int // most open connections beyond the most in flight
		dials  int // most requests that open their own
		opened int // most connections in all
	}{
		"poisson":         {poisson(600, 4), 2, 12, 150},
		"bursts":          {bursts(10, 20, 10*time.Second), 0, 0, 220},
		"bursts that use": {bursts(20, 20, 1013*time.Millisecond), 0, 0, 22}, // the connections of those before
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{ttft: 300 * time.Millisecond, itl: 80 * time.Millisecond, dials: time.Millisecond}
				b := newBench(t, c.rows, schedule.Options{Repeat: schedule.Repeat{Mode: schedule.Once}}, f, func(w *Workload) { w.Lanes = 64 })
				b.run(t, t.Context(), t.Context())
				dials := 0
				for _, r := range b.kept.all {
					if r.Timeline.Connect > 0 {
						dials++
					}
				}
				if f.mostOpen > f.most+c.beyond || dials > c.dials || f.unused*100 > len(f.conns) || len(f.conns) > c.opened || f.open > 0 {
					t.Errorf("at most %d open for %d in flight; %d of %d connections unused; %d of %d requests opened their own; %d left",
						f.mostOpen, f.most, f.unused, len(f.conns), dials, len(b.kept.all), f.open)
				}
			})
		})
	}
}

// bursts has n times so many rows at once.
func bursts(n, at int, gap time.Duration) schedule.Source {
	rows := make([]trace.Record, n*at)
	for i := range rows {
		rows[i].Offset = time.Duration(i/at) * gap
	}
	return source(rows...)
}

// Between bursts that are further apart than idle no connection is open.
func TestNoConnectionIsKeptForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{ttft: 10 * time.Millisecond}
		b := newBench(t, bursts(2, 60, time.Hour), schedule.Options{Repeat: schedule.Repeat{Mode: schedule.Once}}, f, func(w *Workload) { w.Lanes = 64 })
		time.AfterFunc(time.Minute, func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			if f.open > 0 || len(f.order) == 0 {
				t.Errorf("%d open, a minute after %d requests", f.open, len(f.order))
			}
		})
		b.run(t, t.Context(), t.Context())
	})
}

// With connections: each, every request opens its own at its due instant.
func TestEachItsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{ttft: 10 * time.Millisecond, dials: 3 * time.Millisecond, connections: openai.ConnectionsEach}
		b := newBench(t, every(20, 100*time.Millisecond), schedule.Options{Repeat: schedule.Repeat{Mode: schedule.Once}}, f, nil)
		b.run(t, t.Context(), t.Context())
		for _, r := range b.kept.all {
			if tl := r.Timeline; r.Outcome != measure.OK || tl.Connect != 3*time.Millisecond || tl.Write.Sub(tl.Due) != tl.Connect || r.Lateness() != 0 {
				t.Errorf("%s: connected in %v, written %v after its due instant, late by %v", r.Outcome, tl.Connect, tl.Write.Sub(tl.Due), r.Lateness())
			}
		}
		if f.unused > 0 || f.mostOpen > 1 || len(b.kept.all) != 20 {
			t.Errorf("%d connections unused, %d open at once, %d requests", f.unused, f.mostOpen, len(b.kept.all))
		}
	})
}

// At a server that has 4 connections at once, ten requests within a second wait as those of users who do not know each other: no place
// is idle while a request waits for one.
func TestServerWithFewConnections(t *testing.T) {
	sum := map[openai.ConnectionMode]time.Duration{}
	for _, mode := range []openai.ConnectionMode{openai.ConnectionsKept, openai.ConnectionsEach} {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{ttft: 600 * time.Millisecond, dials: time.Millisecond, connections: mode, slots: make(chan struct{}, 4)}
			b := newBench(t, every(10, 100*time.Millisecond), schedule.Options{Repeat: schedule.Repeat{Mode: schedule.Once}}, f, nil)
			b.run(t, t.Context(), t.Context())
			for _, r := range b.kept.all {
				ttft, _ := r.TTFT()
				sum[mode] += r.Timeline.Write.Add(ttft).Sub(r.Timeline.Due)
				if r.Outcome != measure.OK {
					t.Errorf("%s: %s", r.Outcome, r.Error)
				}
			}
		})
	}
	if kept, each := sum[openai.ConnectionsKept], sum[openai.ConnectionsEach]; kept > each+10*50*time.Millisecond {
		t.Errorf("the requests wait %v in all, with a connection for each %v", kept, each)
	}
}
