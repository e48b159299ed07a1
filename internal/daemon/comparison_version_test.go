package daemon

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// A restart with the version that is being judged keeps its evidence, also over a restart of replayd and with another
// model. Another version, and none, begin a new epoch. Each epoch with a judged pair is counted.
func TestRestartOfOneVersion(t *testing.T) {
	dir := t.TempDir()
	life := func(t *testing.T, f func(w *world, restart func(version string, want bool))) {
		synctest.Test(t, func(t *testing.T) {
			w, _, conf := twoServers(t, 1)
			w.dir = dir
			conf.Workloads[0].Trace.Path = w.put(paced(20, 100))
			conf.State.Path = filepath.Join(dir, "state")
			w.start(conf, true)
			f(w, func(version string, want bool) {
				t.Helper()
				before := w.compared()
				anew, err := w.g.RestartComparison("rollout", version)
				after := w.compared()
				if anew != want || err != nil || after.Epoch.After(before.Epoch) != want {
					t.Errorf("restart with %q: anew %t, %v; the epoch was %v and is %v",
						version, anew, err, before.Epoch, after.Epoch)
				}
				if kept := after.Judgment.Pairs.Judged > 0; kept == want || after.Version != version {
					t.Errorf("restart with %q: %d pairs about %q", version, after.Judgment.Pairs.Judged, after.Version)
				}
				pass(10 * time.Second)
			})
			w.end()
		})
	}
	check := func(t *testing.T, w *world, epochs int64, version string) {
		t.Helper()
		if c := w.compared(); c.Epochs != epochs || c.Version != version {
			t.Errorf("want version %q and %d epochs, got %q and %d", version, epochs, c.Version, c.Epochs)
		}
		if n := w.page().Sum("replayd_comparison_version_info", version); n != 1 {
			t.Errorf("replayd_comparison_version_info is %v for %q", n, version)
		}
	}
	life(t, func(w *world, restart func(string, bool)) {
		pass(10 * time.Second)
		check(t, w, 1, "")
		restart("a", true)
		restart("a", false)
		check(t, w, 2, "a")
		restart("", true)
		restart("", true)
		check(t, w, 4, "")
		restart("b", true)
		check(t, w, 5, "b")
	})
	life(t, func(w *world, restart func(string, bool)) {
		check(t, w, 5, "b")
		restart("b", false)
		w.lists("other")
		w.dies(true)
		pass(10 * time.Second)
		w.dies(false)
		pass(30 * time.Second)
		check(t, w, 6, "b")
		restart("b", false)
		restart("a", true)
		check(t, w, 7, "a")
	})
}
