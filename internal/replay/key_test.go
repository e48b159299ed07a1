package replay

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/measure"
	"replayd/internal/schedule"
)

// A changed key file takes effect within a second, also for requests whose messages were built before. While the file
// is missing, requests are dropped as invalid. A restored file takes effect within a second too.
func TestKeyActsAtTheWrite(t *testing.T) {
	sent := []string{"one", "one", "one", "two", "two", "two", "three", "three", "three", "three"}
	for name, c := range map[string]struct {
		plan schedule.Options
		ttft time.Duration
	}{
		"open":   {once, time.Millisecond},
		"closed": {closedOnce, time.Second}, // all messages are built at the start
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				file := filepath.Join(t.TempDir(), "key")
				put := func(key string) {
					if err := os.WriteFile(file, []byte(key), 0o600); err != nil {
						t.Error(err)
					}
				}
				put("one")
				var mu sync.Mutex
				var keys []string
				f := &fake{keyFile: file, ttft: c.ttft, keyed: func(key string) {
					mu.Lock()
					defer mu.Unlock()
					keys = append(keys, strings.TrimPrefix(key, "Bearer "))
				}}
				b := newBench(t, every(13, time.Second), c.plan, f, func(w *Workload) { w.Lanes = 1 })
				start := time.Now()
				at := func(after time.Duration, do func()) { time.AfterFunc(time.Until(start.Add(after)), do) }
				at(3500*time.Millisecond, func() { put("two") })
				at(6100*time.Millisecond, func() {
					if err := os.Remove(file); err != nil {
						t.Error(err)
					}
				})
				at(8900*time.Millisecond, func() { put("three") })
				b.run(t, t.Context(), t.Context())
				mu.Lock()
				defer mu.Unlock()
				want(t, "keys", keys, sent)
				want(t, "dropped", b.kept.dropped, map[measure.DropReason]int{measure.Invalid: 3})
				want(t, "the target is up", b.target.Health().Up, true)
			})
		})
	}
}
