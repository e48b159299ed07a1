package main

import (
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
