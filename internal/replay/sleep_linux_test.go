package replay

import (
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"replayd/internal/limits"
)

// A successor shows an open guard before it runs. If it cannot run, because no file descriptor is left, it resets the
// gauge.
func TestNoGuardWithoutASleeper(t *testing.T) {
	guarded := func(w *Workload) { w.Guard = limits.Guard{Waiting: 8} }
	before := newBench(t, every(1, time.Second), minutes, &fake{}, guarded)
	before.breaker.Step(time.Now(), limits.Load{Waiting: 8}, nil)
	b := newBench(t, every(1, time.Second), minutes, &fake{}, func(w *Workload) {
		guarded(w)
		w.After, w.Target, w.Sleeper = before.Runner, before.target, nil
	})
	want(t, "guard_open", b.counter(t, "replayd_guard_open", ""), 1.0)
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 0, Max: old.Max}); err != nil {
		t.Fatal(err)
	}
	err := b.Run(t.Context(), t.Context())
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(err, unix.EMFILE) {
		t.Errorf("want %v, got %v", unix.EMFILE, err)
	}
	want(t, "guard_open", b.counter(t, "replayd_guard_open", ""), 0.0)
	before.client.Close()
	b.client.Close()
}
