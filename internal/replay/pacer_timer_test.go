package replay

import (
	"context"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"replayd/test/outside"
)

// paced starts a pacer, which runs until end is called.
func paced(s Sleeper) (p *Pacer, end func()) {
	p = NewPacer(s)
	return p, running(p)
}

// running runs a pacer until end is called.
func running(p *Pacer) (end func()) {
	ctx, stop := context.WithCancel(context.Background())
	var over sync.WaitGroup
	over.Go(func() { p.Run(ctx) })
	return func() {
		stop()
		over.Wait()
	}
}

// Run runs the bench's own pacer, too.
func (b *bench) Run(ctx, hard context.Context) error {
	if b.paces {
		end := running(b.w.Pacer)
		defer end()
	}
	return b.Runner.Run(ctx, hard)
}

// simple joins the pacer with a step that calls do with the current time, under the lock g.
func simple(p *Pacer, g *runnerLock, do func(now time.Time)) *alarm {
	var a *alarm
	a = p.join(g, alone, func() bool {
		if !a.enter() {
			return false
		}
		do(time.Now())
		g.release()
		return true
	})
	return a
}

// The earliest alarm rings first, in whatever order the alarms were set, moved and removed.
func TestPacerCalendar(t *testing.T) {
	for seed := range uint64(50) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		p := NewPacer(NewTimers())
		begin := time.Now()
		var all []*alarm
		for range 1 + rnd.IntN(40) {
			all = append(all, p.join(&runnerLock{}, alone, nil))
		}
		for range 400 {
			a, at := all[rnd.IntN(len(all))], begin.Add(time.Duration(rnd.IntN(100)))
			switch rnd.IntN(8) {
			case 0:
				at = time.Time{}
			case 1:
				a.leave()
			}
			a.set(at)
			want(t, "is set to what it was told, unless it has left", a.at.Equal(at), !a.left || at.IsZero())
			if a.left {
				all = append(all, p.join(&runnerLock{}, alone, nil))
				all = slices.DeleteFunc(all, func(one *alarm) bool { return one == a })
			}
		}
		all = slices.DeleteFunc(all, func(a *alarm) bool { return a.at.IsZero() })
		want(t, "in the calendar", len(p.alarms), len(all))
		if len(all) > 0 {
			first := slices.MinFunc(all, func(a, b *alarm) int { return a.at.Compare(b.at) })
			want(t, "overdue", p.overdue.Load(), max(1, int64(first.at.Add(grace).Sub(p.made))))
		}
		last := time.Time{}
		for a := p.pop(begin.Add(49)); a != nil; a = p.pop(begin.Add(49)) {
			want(t, "is off the calendar", a.at, time.Time{})
		}
		for _, a := range p.alarms {
			if a.at.Before(begin.Add(50)) {
				t.Errorf("seed %d: %v stayed", seed, a.at.Sub(begin))
			}
		}
		for len(p.alarms) > 0 {
			at := p.alarms[0].at
			if at.Before(last) {
				t.Errorf("seed %d: %v after %v", seed, at.Sub(begin), last.Sub(begin))
			}
			last = at
			p.pop(at)
		}
		want(t, "overdue at the end", p.overdue.Load(), 0)
	}
}

// In virtual time each step runs exactly on time, even if it is set while the pacer sleeps until a later one.
func TestPacerIsOnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, end := paced(NewTimers())
		defer end()
		begin := time.Now()
		const n = 20
		var gates [n]runnerLock
		var rang [n][]time.Duration
		var all [n]*alarm
		for i := range all {
			all[i] = simple(p, &gates[i], func(now time.Time) {
				rang[i] = append(rang[i], now.Sub(begin))
				if len(rang[i]) < 5 {
					all[i].set(now.Add(time.Duration(i+1) * time.Second))
				}
			})
		}
		for i := range slices.Backward(all[:]) { // each is earlier than the alarm that the pacer sleeps for
			gates[i].Lock()
			all[i].set(begin.Add(time.Duration(i+1) * time.Second))
			gates[i].Unlock()
			synctest.Wait()
		}
		<-time.After(time.Hour)
		for i := range all {
			all[i].leave()
			step := time.Duration(i+1) * time.Second
			if want := []time.Duration{step, 2 * step, 3 * step, 4 * step, 5 * step}; !slices.Equal(rang[i], want) {
				t.Errorf("alarm %d: want %v, got %v", i, want, rang[i])
			}
		}
	})
}

// While one lock is held for a minute, the alarms of other locks ring on time. The goroutine that releases the lock
// runs the overdue step. Later steps are run by the pacer again.
func TestPacerWaitsForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, end := paced(NewTimers())
		defer end()
		begin := time.Now()
		var held, free runnerLock
		var late, onTime []time.Duration
		every := func(a **alarm, rang *[]time.Duration) func(time.Time) {
			return func(now time.Time) {
				*rang = append(*rang, now.Sub(begin))
				(*a).set(begin.Add(time.Duration(len(*rang)+1) * 20 * time.Second))
			}
		}
		var one, other *alarm
		one = simple(p, &held, every(&one, &late))
		other = simple(p, &free, every(&other, &onTime))
		for g, a := range map[*runnerLock]*alarm{&held: one, &free: other} {
			g.Lock()
			a.set(begin.Add(20 * time.Second))
			g.Unlock()
		}
		<-time.After(30 * time.Second)
		held.Lock()
		<-time.After(40 * time.Second)
		held.Unlock()
		<-time.After(15 * time.Second)
		one.leave()
		other.leave()
		s := time.Second
		if want := []time.Duration{20 * s, 40 * s, 60 * s, 80 * s}; !slices.Equal(onTime, want) {
			t.Errorf("of the free one: want %v, got %v", want, onTime)
		}
		// The step of 40 s runs at 70 s. It sets the alarm to 60 s, which has passed, so it rings at once.
		if want := []time.Duration{20 * s, 70 * s, 70 * s, 80 * s}; !slices.Equal(late, want) {
			t.Errorf("of the held one: want %v, got %v", want, late)
		}
	})
}

// Whoever holds the lock and whoever requests a step, a step begins after the last request.
func TestPacerLosesNoStep(t *testing.T) {
	rounds := 20000
	if testing.Short() {
		rounds = 2000
	}
	sleeper, err := NewSleeper()
	if err != nil {
		t.Fatal(err)
	}
	p, end := paced(sleeper)
	defer end()
	var g runnerLock
	var wishes, seen atomic.Int64 // a step sees all earlier wishes
	var alarms [3]*alarm
	for i := range alarms {
		alarms[i] = simple(p, &g, func(time.Time) { seen.Store(wishes.Load()) })
	}
	for round := range rounds {
		a := alarms[round%len(alarms)]
		var running sync.WaitGroup
		for holder := range 2 {
			running.Go(func() {
				for range round % 4 * holder {
					runtime.Gosched()
				}
				g.Lock()
				if round%5 == 0 {
					runtime.Gosched()
				}
				g.Unlock()
			})
		}
		switch round % 3 {
		case 0: // like a lane that stands in for the pacer
			wishes.Add(1)
			a.ring()
		case 1: // like a setter
			g.Lock()
			wishes.Add(1)
			a.want()
			g.Unlock()
		case 2: // like the pacer
			g.Lock()
			wishes.Add(1)
			a.set(time.Now())
			g.Unlock()
		}
		running.Wait()
		for begin := time.Now(); seen.Load() < wishes.Load(); runtime.Gosched() { // another goroutine may still run the step
			if time.Since(begin) > outside.Patience {
				t.Fatalf("round %d: %d wishes, the last step saw %d", round, wishes.Load(), seen.Load())
			}
		}
	}
	for _, a := range alarms {
		a.leave()
	}
}

// A ring races with the release of the lock, at a slightly different time in each round. When both have returned, the
// step has run.
func TestPacerMeetsTheEndOfAHold(t *testing.T) {
	rounds := int64(200_000)
	if testing.Short() {
		rounds = 20_000
	}
	var g runnerLock
	var begun, held atomic.Int64 // rounds
	var seen int64
	a := simple(NewPacer(NewTimers()), &g, func(time.Time) { seen = begun.Load() })
	var running sync.WaitGroup
	running.Go(func() {
		for round := int64(1); round <= rounds; round++ {
			g.Lock()
			held.Store(round)
			for begun.Load() < round {
				runtime.Gosched()
			}
			for range round % 64 {
				begun.Load() // takes a moment
			}
			g.Unlock()
			held.Store(-round)
			for begun.Load() == round {
				runtime.Gosched()
			}
		}
	})
	for round := int64(1); round <= rounds; round++ {
		for held.Load() != round {
			runtime.Gosched()
		}
		begun.Store(round)
		a.ring()
		for held.Load() != -round {
			runtime.Gosched()
		}
		g.Lock()
		if seen != round {
			t.Fatalf("round %d: the last step was in round %d", round, seen)
		}
		g.mu.Unlock()
		begun.Store(-round)
	}
	running.Wait()
}

// After leave returns, no step runs or begins, even if one was requested.
func TestPacerLeave(t *testing.T) {
	const rounds = 100
	p, end := paced(NewTimers())
	defer end()
	var g runnerLock
	for round := range rounds {
		var over atomic.Bool
		var a *alarm
		a = simple(p, &g, func(now time.Time) {
			if over.Load() {
				t.Errorf("round %d: a step after the end", round)
			}
			a.set(now.Add(100 * time.Microsecond))
		})
		var running sync.WaitGroup
		var stop atomic.Bool
		running.Go(func() {
			for !stop.Load() {
				g.Lock()
				a.want()
				g.Unlock()
				runtime.Gosched()
			}
		})
		running.Go(func() {
			for !stop.Load() {
				p.stepOverdue(time.Now().Add(time.Second))
				runtime.Gosched()
			}
		})
		for range round % 50 {
			runtime.Gosched()
		}
		a.leave()
		over.Store(true)
		g.Lock()
		a.set(time.Now())
		a.want()
		g.Unlock()
		stop.Store(true)
		running.Wait()
	}
	want(t, "alarms at the end", len(p.alarms), 0)
}
