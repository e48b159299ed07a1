package replay

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/dispatch"
	"replayd/internal/measure"
	"replayd/internal/trace"
)

// At the bound on waiting bytes, a run stops reading its trace, and later sends every row, in order and late. A daemon
// drops the rows that would have to wait, and logs it once.
func TestMaxWaiting(t *testing.T) {
	for name, holds := range map[string]bool{"run": true, "serve": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const rows = 300
				var log bytes.Buffer
				waiting := &dispatch.Waiting{Most: 10_000} // some 20 rows
				b := newBench(t, every(rows, 20*time.Millisecond), once, &fake{ttft: 100 * time.Millisecond}, func(w *Workload) {
					w.Lanes, w.MaxWait, w.HoldReader, w.Waiting = 1, 0, holds, waiting
					w.Log = slog.New(slog.NewTextHandler(&log, nil))
				})
				most := int64(0)
				var watch sync.WaitGroup
				watch.Go(func() {
					<-time.After(7300 * time.Microsecond) // between two steps: a step counts the row that it drops next
					for range rows {
						<-time.After(50 * time.Millisecond)
						most = max(most, waiting.Bytes())
					}
				})
				b.run(t, t.Context(), t.Context())
				watch.Wait()
				want(t, "bytes at the end", waiting.Bytes(), int64(0))
				if holds {
					want(t, "lines about it", strings.Count(log.String(), "reading the trace pauses"), 1)
					want(t, "dropped", len(b.kept.dropped), 0)
					want(t, "sent", len(b.kept.all), rows)
					for i, r := range b.kept.all {
						want(t, "row", r.Row, i)
						want(t, r.ID+" planned", r.Timeline.Planned.Sub(b.kept.all[0].Timeline.Planned), time.Duration(i)*20*time.Millisecond)
					}
					// The reader resumes when the sum is below the bound. It then reads all rows that are due in the
					// next 5 s.
					if most > 200_000 {
						t.Errorf("want about 10,000 bytes that wait, got %d", most)
					}
					return
				}
				want(t, "sent or dropped", len(b.kept.all)+b.kept.dropped[measure.Overload], rows)
				if most < 5_000 || most > 10_000 {
					t.Errorf("want up to 10,000 bytes that wait, got %d", most)
				}
				want(t, "lines about it", strings.Count(log.String(), "MiB of requests wait"), 1)
			})
		})
	}
}

// A run with a duration sends all rows planned before its end, even rows that its reader reaches only later.
func TestReaderHeldBackBeyondTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waiting := &dispatch.Waiting{Most: 10_000} // some 20 rows
		b := newBench(t, every(400, 20*time.Millisecond), once, &fake{ttft: 100 * time.Millisecond}, func(w *Workload) {
			w.Lanes, w.MaxWait, w.HoldReader, w.Waiting, w.Duration = 1, 0, true, waiting, 6*time.Second
		})
		b.run(t, t.Context(), t.Context())
		want(t, "dropped", len(b.kept.dropped), 0)
		want(t, "sent", len(b.kept.all), 300)
	})
}

// The end of the drops is logged even if no later row waits.
func TestCrowdIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rows := make([]trace.Record, 140)
		for i := range rows {
			rows[i].Offset = time.Duration(i) * 10 * time.Millisecond // one row in ten finds a lane
			if i >= 100 {
				rows[i].Offset = 30*time.Second + time.Duration(i-100)*5*time.Second
			}
		}
		var log bytes.Buffer
		waiting := &dispatch.Waiting{Most: 5_000}
		b := newBench(t, source(rows...), once, &fake{ttft: 100 * time.Millisecond}, func(w *Workload) {
			w.Lanes, w.MaxWait, w.Waiting, w.Log = 1, 0, waiting, slog.New(slog.NewTextHandler(&log, nil))
		})
		b.run(t, t.Context(), t.Context())
		want(t, "lines that say that it begins", strings.Count(log.String(), "MiB of requests wait"), 1)
		want(t, "lines that say that it is over", strings.Count(log.String(), "the waiting requests fit again"), 1)
	})
}
