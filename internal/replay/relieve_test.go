package replay

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/measure"
)

// tardy wakes late, like a pacer for which Go's scheduler has no processor.
type tardy struct {
	*Timers
	by time.Duration
}

func (s tardy) Until(at time.Time) {
	if !at.IsZero() {
		at = at.Add(s.by)
	}
	s.Timers.Until(at)
}

// If the pacer is late, the next lane that reads data sends the row that is due.
func TestLanesStepInForALatePacer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ms = time.Millisecond
		b := newBench(t, every(5, 100*ms), once, &fake{ttft: 40 * ms, itl: 40 * ms}, func(w *Workload) {
			w.Pacer.sleeper = tardy{NewTimers(), 60 * ms}
		})
		b.run(t, t.Context(), t.Context())
		slices.SortFunc(b.kept.all, func(a, c measure.Request) int { return a.Row - c.Row })
		var late []time.Duration
		for _, r := range b.kept.all {
			late = append(late, r.Timeline.Write.Sub(r.Timeline.Due))
		}
		// No lane reads when the first row is due. The chunks of the first row are read at 100, 140 and 180 ms. The
		// second row is sent at 140 ms and its chunks are read from 180 to 260 ms, and so on. A read exactly at the due
		// time sends nothing, because grace has not passed yet.
		if want := []time.Duration{60 * ms, 40 * ms, 20 * ms, 40 * ms, 20 * ms}; !slices.Equal(late, want) {
			t.Errorf("want writes %v after the due instants, got %v", want, late)
		}
	})
}
