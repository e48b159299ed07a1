package daemon

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/canary"
)

// Over reloads that replace a comparison, restarts of the evidence and the end, each row that came due is counted once, and the requests of each side are
// those in its server's log.
func TestRequestsOverReloads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n, conf := twoServers(t, 1)
		var mu sync.Mutex
		log := map[string]int64{}
		w.answers = func(_ http.ResponseWriter, r *http.Request, _ string) bool {
			mu.Lock()
			defer mu.Unlock()
			if strings.HasPrefix(r.Header.Get("X-Request-Id"), "load") {
				log[r.Host]++
			}
			return false
		}
		w.token = func(r *http.Request) time.Duration { return 30 * n.token(r) } // answers outlive the reloads
		w.start(conf, true)
		for i := range 4 {
			pass(20 * time.Second)
			next := conf
			next.Targets, next.Workloads, next.Comparisons = slices.Clone(conf.Targets), slices.Clone(conf.Workloads), slices.Clone(conf.Comparisons)
			switch i {
			case 0:
				next.Targets[1].Timeouts.Total++
			case 1:
				next.Workloads[0].Lanes++
			case 2:
				next.Comparisons[0].Tolerance = 0.1
			case 3:
				w.restart("rollout")
				continue
			}
			w.reload(next)
			conf = next
		}
		pass(20 * time.Second)
		w.end()
		a := w.comparisons.Counters("rollout").Totals().Account
		if a.Open() != 0 || a.Pairs.Bad != [2]int64{} || a.Due < 950 || a.Pairs.Judged < 900 {
			t.Errorf("in the end: %+v, %d open", a, a.Open())
		}
		for side, r := range a.Requests {
			if got := log[canary.Side(side).String()]; r.Sent != got || r.Sent+r.Unsent != a.Due {
				t.Errorf("the %v got %d requests, of %d rows; counted: %+v", canary.Side(side), got, a.Due, r)
			}
		}
	})
}
