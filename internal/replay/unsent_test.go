package replay

import (
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/limits"
	"replayd/internal/measure"
	"replayd/internal/schedule"
	"replayd/internal/trace"
)

// Requests that find no descriptor, memory or port are missed, and no outcome of the engine: no failure opens the guard, and the target
// stays up. Later turns of their sessions are missed, too.
func TestOwnShortageIsNoOutcome(t *testing.T) {
	turn := func(n int, at time.Duration, session string) trace.Record {
		return trace.Record{Number: n, Offset: at, InputTokens: 10, OutputTokens: 2, Session: session, Turn: n % 2, Delay: time.Duration(n%2) * 6 * time.Second}
	}
	turns := source(
		turn(0, 0, "a"), turn(2, time.Second, "b"), turn(1, 6*time.Second, "a"), turn(3, 7*time.Second, "b"),
		turn(4, 8*time.Second, "c"), turn(5, 14*time.Second, "c"), turn(6, 15*time.Second, "d"), turn(7, 21*time.Second, "d"),
	)
	for name, c := range map[string]struct {
		source schedule.Source
		want   map[measure.DropReason]int
		ok     int
	}{
		"open":     {every(20, time.Second), map[measure.DropReason]int{measure.Missed: 9}, 11},
		"sessions": {turns, map[measure.DropReason]int{measure.Missed: 5}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{ttft: time.Millisecond, refusal: &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("socket", syscall.EMFILE)}}
				var unsent []measure.DropReason
				b := newBench(t, c.source, once, f, func(w *Workload) {
					w.Guard = limits.Guard{ErrorRatio: 0.1}
					w.Unsent = func(_ *schedule.Due, why measure.DropReason, _ time.Time) { unsent = append(unsent, why) }
				})
				time.AfterFunc(lead+500*time.Millisecond, func() { f.refuse.Store(true); f.cutAll() })
				time.AfterFunc(lead+9500*time.Millisecond, func() { f.refuse.Store(false) })
				b.run(t, t.Context(), t.Context())
				want(t, "outcomes", b.kept.outcomes(), map[measure.Outcome]int{measure.OK: c.ok})
				want(t, "dropped", b.kept.dropped, c.want)
				want(t, "told the comparison", len(unsent), c.want[measure.Missed])
				want(t, "in flight", b.counter(t, "replayd_requests_in_flight", ""), 0.0)
				want(t, "waiting", b.counter(t, "replayd_requests_waiting", ""), 0.0)
				want(t, "the target is up", b.target.Health().Up, true)
				want(t, "the target is reached", b.target.Health().Reached, true)
			})
		})
	}
}

// The epoch of a process may have passed. The rows that were due before the process started are neither sent nor missed.
func TestEpochThatHasPassed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, every(100, 100*time.Millisecond), once, &fake{}, func(w *Workload) { w.Epoch = time.Now().Add(-5050 * time.Millisecond) })
		b.run(t, t.Context(), t.Context())
		want(t, "rows", b.sentOnce(t)[0], span(51, 100))
		want(t, "dropped", b.kept.dropped, map[measure.DropReason]int(nil))
	})
}
