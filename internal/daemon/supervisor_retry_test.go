package daemon

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/config"
)

// A reload that failed for want of a file is tried again as soon as the file is there, and else after 15 s, 30 s and so on. A wrong
// configuration is not tried again.
func TestFailedReloadIsTriedAgain(t *testing.T) {
	path := write(t, "trace.jsonl", rows(5))
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := keep(t, conf([]config.Target{target("t", nobody)}, rare("a", path)))
		late := filepath.Join(dir, "late.jsonl")
		lanes := func() int { return b.workloads()[0].config.Lanes }
		if err := <-b.reload(func(c *config.Config) { c.Workloads[0].Lanes, c.Workloads[0].Trace.Path = 2, late }); err == nil {
			t.Fatal("want the reload to fail without its trace")
		}
		begin := b.reads()
		for _, passed := range []struct {
			time time.Duration
			want int // tries in all
		}{{14 * time.Second, 0}, {7 * time.Second, 1}, {23 * time.Second, 1}, {13 * time.Second, 2}, {time.Hour, 15}} {
			pass(passed.time)
			synctest.Wait()
			if got := b.reads() - begin; got != passed.want {
				t.Errorf("after further %v: want %d tries, got %d", passed.time, passed.want, got)
			}
		}
		if err := os.WriteFile(late, []byte(rows(5)), 0o600); err != nil {
			t.Fatal(err)
		}
		pass(watchEvery + time.Second)
		synctest.Wait()
		if lanes() != 2 {
			t.Errorf("the trace is there, and the configuration is not reloaded: %d lanes", lanes())
		}
		tries := b.reads()
		if err := <-b.reload(func(c *config.Config) { c.Workloads = nil }); err == nil {
			t.Fatal("want the reload to fail without workloads")
		}
		pass(time.Hour)
		if got := b.reads() - tries; got != 1 {
			t.Errorf("a wrong configuration was read %d times, want once", got)
		}
	})
}
