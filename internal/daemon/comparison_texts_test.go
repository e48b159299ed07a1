package daemon

import (
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/replay"
)

// Sides that may be one server get texts of their own; others get equal texts.
func TestTextsOfOneServer(t *testing.T) {
	for candidate, want := range map[string]string{"http://baseline:80/": "", "http://candidate": "load"} {
		synctest.Test(t, func(t *testing.T) {
			w, _, c := twoServers(t, 1)
			c.Targets[1].URL = candidate
			w.start(c, true)
			pass(time.Second)
			for _, one := range w.g.comparisons {
				var of replay.Workload
				side{of: one}.join(&of, nil, "")
				if of.SaltName != want {
					t.Errorf("%s: the texts are salted as %q, want %q", candidate, of.SaltName, want)
				}
			}
			w.end()
		})
	}
}
