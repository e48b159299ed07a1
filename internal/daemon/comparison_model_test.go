package daemon

import (
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/canary"
)

// When a server begins to serve another model, under the load, nobody is blamed for the requests that name the old one: no session's rest, no request that
// was built ahead, none in flight. New requests name the new one.
func TestAnotherModelIsNobodysFault(t *testing.T) {
	for name, dies := range map[string]bool{"while its connections stay": false, "after a restart of the server": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, _, conf := twoServers(t, 1)
				var mu sync.Mutex
				var wrong []time.Time
				w.answers = func(rw http.ResponseWriter, _ *http.Request, model string) bool {
					w.mu.Lock()
					known := slices.Contains(w.models, model)
					w.mu.Unlock()
					if known {
						return false
					}
					mu.Lock()
					wrong = append(wrong, time.Now())
					mu.Unlock()
					http.Error(rw, `{"error":{"message":"The model does not exist.","code":404}}`, http.StatusNotFound)
					return true
				}
				w.token = func(*http.Request) time.Duration { return 40 * time.Millisecond }
				w.start(conf, true)
				pass(30 * time.Second)
				first := w.compared()
				if dies {
					w.dies(true)
					pass(5 * time.Second)
				}
				w.lists("n")
				if dies {
					w.dies(false)
				}
				pass(time.Minute)
				second := w.compared()
				totals := second.Counters.Totals()
				if !second.Epoch.After(first.Epoch) || second.Judgment.Pairs.Judged < 400 {
					t.Errorf("the epoch was %v and is %v, with %+v", first.Epoch, second.Epoch, second.Judgment.Pairs)
				}
				if p := second.Judgment.Pairs; p.Void > 0 || p.Bad != [2]int64{} {
					t.Errorf("the new epoch has %+v", p)
				}
				if n := totals.Pairs.Bad[canary.Candidate]; !dies && n > 0 {
					t.Errorf("%d requests were held against the candidate", n)
				}
				mu.Lock()
				defer mu.Unlock()
				t.Logf("%d requests named the old model, the last after %v; %+v", len(wrong), wrong[len(wrong)-1].Sub(second.Epoch), totals.Pairs)
				if last := wrong[len(wrong)-1]; last.After(second.Epoch) {
					t.Errorf("a request named the old model %v after the new epoch began", last.Sub(second.Epoch))
				}
				w.end()
				if n := w.compared().Counters.Totals(); n.Open() != 0 {
					t.Errorf("in the end: %+v", n)
				}
			})
		})
	}
}
