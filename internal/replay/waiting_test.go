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

// Where too much waits, a run reads its trace no further and sends every row, in order and late from its planned instant; a daemon
// drops what would have to wait, and says so once.
func TestMaxWaiting(t *testing.T) {
	for name, holds := range map[string]bool{"run": true, "serve": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const rows = 300
				var log bytes.Buffer
				waiting := new(dispatch.Waiting)
				waiting.Bound(10_000) // some 20 rows
				b := newBench(t, every(rows, 20*time.Millisecond), once, &fake{ttft: 100 * time.Millisecond}, func(w *Workload) {
					w.Lanes, w.MaxWait, w.HoldReader, w.Waiting = 1, 0, holds, waiting
					w.Log = slog.New(slog.NewTextHandler(&log, nil))
				})
				most := int64(0)
				var watch sync.WaitGroup
				watch.Go(func() {
					<-time.After(7300 * time.Microsecond) // between steps: within one, the row that is dropped next is counted, too
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
					// The reader goes on when the sum is below the bound, with as many rows as are due in the next 5 s.
					if most > 200_000 {
						t.Errorf("want about 10,000 bytes that wait, got %d", most)
					}
					return
				}
				want(t, "sent or dropped", len(b.kept.all)+b.kept.dropped[measure.Overload], rows)
				if most < 5_000 || most > 10_000 {
					t.Errorf("want up to 10,000 bytes that wait, got %d", most)
				}
				want(t, "lines about it", strings.Count(log.String(), "max_waiting is reached"), 1)
			})
		})
	}
}

// A run that has an end sends all rows that are planned before it, also those that its reader comes to only after it.
func TestReaderHeldBackBeyondTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waiting := new(dispatch.Waiting)
		waiting.Bound(10_000) // some 20 rows
		b := newBench(t, every(400, 20*time.Millisecond), once, &fake{ttft: 100 * time.Millisecond}, func(w *Workload) {
			w.Lanes, w.MaxWait, w.HoldReader, w.Waiting, w.Duration = 1, 0, true, waiting, 6*time.Second
		})
		b.run(t, t.Context(), t.Context())
		want(t, "dropped", len(b.kept.dropped), 0)
		want(t, "sent", len(b.kept.all), 300)
	})
}

// That rows are not dropped any more is said also where later ones never wait.
func TestCrowdIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rows := make([]trace.Record, 140)
		for i := range rows {
			rows[i].Offset = time.Duration(i) * 10 * time.Millisecond // of which one in ten finds a lane
			if i >= 100 {
				rows[i].Offset = 30*time.Second + time.Duration(i-100)*5*time.Second
			}
		}
		var log bytes.Buffer
		waiting := new(dispatch.Waiting)
		waiting.Bound(5_000)
		b := newBench(t, source(rows...), once, &fake{ttft: 100 * time.Millisecond}, func(w *Workload) {
			w.Lanes, w.MaxWait, w.Waiting, w.Log = 1, 0, waiting, slog.New(slog.NewTextHandler(&log, nil))
		})
		b.run(t, t.Context(), t.Context())
		want(t, "lines that say that it begins", strings.Count(log.String(), "max_waiting is reached"), 1)
		want(t, "lines that say that it is over", strings.Count(log.String(), "waiting requests fit within max_waiting again"), 1)
	})
}
