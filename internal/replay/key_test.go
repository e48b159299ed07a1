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

// A key in a file acts on the requests that are written a second after it was changed, though their messages were built before.
// Without the file requests are dropped as invalid; the file that is there again acts within a second, too.
func TestKeyActsAtTheWrite(t *testing.T) {
	sent := []string{"one", "one", "one", "two", "two", "two", "three", "three", "three", "three"}
	for name, c := range map[string]struct {
		plan schedule.Options
		ttft time.Duration
	}{
		"open":   {once, time.Millisecond},
		"closed": {closedOnce, time.Second}, // all rows' messages are built at once
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
				want(t, "the target is up", b.target.Answer().Up, true)
			})
		})
	}
}
