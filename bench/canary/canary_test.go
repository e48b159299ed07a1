package main

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"replayd/internal/canary"
	"replayd/internal/schedule"
)

// In rollouts of 8 hours on both models of the engine, half busy: an equal server is never convicted, one with a
// prefill 10 % slower always is. make suite NAME=bench-canary plays thousands.
func TestPromise(t *testing.T) {
	f, err := openSample(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rollouts, long := uint64(3), 8*time.Hour
	if testing.Short() {
		rollouts, long = 1, 4*time.Hour
	}
	l, err := newLoad(f, schedule.Exact, long, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, stepTokens := range []int{0, 2048} {
		o, err := l.engine(stepTokens, 0.5)
		if err != nil {
			t.Fatal(err)
		}
		o.Jitter = 0.1
		for seed := range rollouts {
			equal, _ := effectOf("equal")
			b, c, err := l.play(o, equal, seed)
			if err != nil {
				t.Fatal(err)
			}
			if s := l.verdict(b, c, equal, seed); s.verdict != canary.Pass {
				t.Errorf("steps of %d tokens, rollout %d: equal servers: %+v", stepTokens, seed, s)
			}
			slow, _ := effectOf("prefill 10 % slower")
			b, c, err = l.play(o, slow, seed)
			if err != nil {
				t.Fatal(err)
			}
			if s := l.verdict(b, c, slow, seed); s.verdict != canary.Fail || s.at > 4*time.Hour {
				t.Errorf("steps of %d tokens, rollout %d: %s: %+v", stepTokens, seed, slow.name, s)
			}
		}
	}
}

// A rollout from a pool has each row's times after its instant, no loop twice, and both sides from the same loops.
func TestPool(t *testing.T) {
	f, err := openSample(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	l, err := newLoad(f, schedule.Exact, time.Hour, 8)
	if err != nil {
		t.Fatal(err)
	}
	o, err := l.engine(0, 0.5)
	if err != nil {
		t.Fatal(err)
	}
	o.Jitter = 0.1
	p, err := l.pool(o, 4)
	if err != nil {
		t.Fatal(err)
	}
	sides := p.rollout(rand.New(rand.NewPCG(1, 1)))
	seen := map[time.Duration]bool{}
	for row, a := range l.arrivals {
		for _, played := range sides {
			r := played[row]
			if r.First <= a.At || r.Last < r.First || r.First > a.At+time.Hour {
				t.Fatalf("row %d of %v is played from %v to %v", row, a.At, r.First, r.Last)
			}
			if row%l.loop == 0 {
				if seen[r.First-a.At] {
					t.Errorf("the loop with a first token after %v comes twice", r.First-a.At)
				}
				seen[r.First-a.At] = true
			}
		}
	}
	if whole := len(l.arrivals) / l.loop; len(seen) != 2*whole || len(p.loops) != 4*(whole-1) {
		t.Errorf("%d loops of a pool of %d, want %d", len(seen), len(p.loops), 2*whole)
	}
}

// The lower bound of a rate has closed forms where one, or all, of the rollouts count.
func TestAtLeast(t *testing.T) {
	for _, c := range []struct {
		k, n int
		want float64
	}{
		{0, 1000, 0},
		{1, 1000, 1 - math.Pow(0.99, 1.0/1000)},
		{40, 40, math.Pow(0.01, 1.0/40)},
		{18, 1000, 0.009652}, // by exact sums in Python
	} {
		if got := atLeast(c.k, c.n); math.Abs(got-c.want) > 1e-6 {
			t.Errorf("%d of %d: at least %.6f, want %.6f", c.k, c.n, got, c.want)
		}
	}
}
