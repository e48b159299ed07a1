package main

import (
	"testing"
	"time"

	"replayd/internal/canary"
	"replayd/internal/schedule"
)

// In rollouts of 8 hours on both models of the engine, half busy: an equal server is never convicted, one with a prefill 10 % slower always is,
// and without blocks equal ones are too, so the simulation is not too kind. make bench-canary plays thousands.
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
	l, err := newLoad(f, schedule.Exact, long)
	if err != nil {
		t.Fatal(err)
	}
	for _, stepTokens := range []int{0, 2048} {
		o, err := l.engine(stepTokens, 0.5)
		if err != nil {
			t.Fatal(err)
		}
		o.Jitter = 0.1
		unblocked := 0
		for seed := range rollouts {
			b, c, err := l.play(o, effects[0], seed)
			if err != nil {
				t.Fatal(err)
			}
			if v, m, at := l.verdict(b, c); v != canary.Pass {
				t.Errorf("steps of %d tokens, rollout %d: equal servers: %s of %v after %v", stepTokens, seed, v, m, at)
			}
			if found := methods[0].judge(l.pairs(b, c), tolerances)[0][canary.TTFT]; found.convicted > 0 {
				unblocked++
			}
			b, c, err = l.play(o, effects[2], seed)
			if err != nil {
				t.Fatal(err)
			}
			if v, m, at := l.verdict(b, c); v != canary.Fail || at > 3*time.Hour {
				t.Errorf("steps of %d tokens, rollout %d: %s: %s of %v after %v", stepTokens, seed, effects[2].name, v, m, at)
			}
		}
		if unblocked == 0 && !testing.Short() {
			t.Errorf("steps of %d tokens: without blocks no equal server was convicted", stepTokens)
		}
	}
}
