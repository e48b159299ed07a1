package limits

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"
)

var epoch = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// at returns the time ms milliseconds after the epoch.
func at(ms int) time.Time { return epoch.Add(time.Duration(ms) * time.Millisecond) }

func want[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: want %v, got %v", what, want, got)
	}
}

var errScrape = errors.New("http://engine/metrics: connection refused")

// Each limit opens at its value, and closes when it was last reached ResumeAfter ago.
func TestGuardSteps(t *testing.T) {
	none := math.NaN()
	type step struct {
		ms    int
		load  Load
		err   error
		state State
		words string
	}
	for name, c := range map[string]struct {
		limits Guard
		steps  []step
	}{
		"waiting": {Guard{Waiting: 8, ResumeAfter: 2 * time.Second}, []step{
			{0, Load{Waiting: 7, KVCacheUsage: none}, nil, Closed, ""},
			{1, Load{Waiting: 8, KVCacheUsage: none}, nil, Open, "waiting 8 ≥ 8"},
			{1000, Load{Waiting: 9.5, KVCacheUsage: none}, nil, Open, "waiting 9.5 ≥ 8"},
			{1001, Load{Waiting: 7, KVCacheUsage: none}, nil, Open, "waiting 9.5 ≥ 8"},
			{2999, Load{Waiting: 0, KVCacheUsage: none}, nil, Open, "waiting 9.5 ≥ 8 until 2s ago"},
			{3000, Load{Waiting: 0, KVCacheUsage: none}, nil, Closed, ""},
			{3001, Load{Waiting: 8, KVCacheUsage: none}, nil, Open, "waiting 8 ≥ 8"},
			{4000, Load{Waiting: 8, KVCacheUsage: none}, nil, Open, "waiting 8 ≥ 8"},
			{6000, Load{Waiting: 8, KVCacheUsage: none}, nil, Open, "waiting 8 ≥ 8"}, // counted from the last time
			{7999, Load{}, nil, Open, "waiting 8 ≥ 8 until 2s ago"},
			{8000, Load{}, nil, Closed, ""},
		}},
		"at once": {Guard{KVCacheUsage: 0.9}, []step{
			{0, Load{Waiting: none, KVCacheUsage: 0.8999}, nil, Closed, ""},
			{1, Load{Waiting: none, KVCacheUsage: 0.9}, nil, Open, "kv_cache_usage 0.9 ≥ 0.9"},
			{2, Load{Waiting: none, KVCacheUsage: 0.8999}, nil, Closed, ""},
		}},
		"two": {Guard{Waiting: 8, KVCacheUsage: 0.9, ResumeAfter: time.Second}, []step{
			{0, Load{Waiting: 8, KVCacheUsage: 0.5}, nil, Open, "waiting 8 ≥ 8"},
			{500, Load{Waiting: 0, KVCacheUsage: 0.95}, nil, Open, "waiting 8 ≥ 8 until 1s ago, kv_cache_usage 0.95 ≥ 0.9"},
			{1000, Load{}, nil, Open, "kv_cache_usage 0.95 ≥ 0.9 until 1s ago"},
			{1500, Load{}, nil, Closed, ""},
		}},
		"blind": {Guard{Waiting: 8, ResumeAfter: time.Second}, []step{
			{0, Load{}, errScrape, Open, "missing_metrics: http://engine/metrics: connection refused"},
			{10, Load{}, nil, Closed, ""}, // at the start, missing metrics end with the first figures
			{20, Load{}, errScrape, Open, "missing_metrics: http://engine/metrics: connection refused"},
			{1019, Load{}, nil, Open, "missing_metrics: http://engine/metrics: connection refused until 1s ago"},
			{1020, Load{}, nil, Closed, ""},
		}},
		"blind at the start, then over the limit": {Guard{Waiting: 8}, []step{
			{0, Load{}, errScrape, Open, "missing_metrics: http://engine/metrics: connection refused"},
			{10, Load{Waiting: 8, KVCacheUsage: none}, nil, Open, "waiting 8 ≥ 8"},
		}},
		"no such figure": {Guard{Waiting: 8, KVCacheUsage: 0.9}, []step{
			{0, Load{Waiting: none, KVCacheUsage: 0.95}, nil, Open, "kv_cache_usage 0.95 ≥ 0.9, missing_metrics: the engine's page does not say how many requests wait"},
			{1, Load{Waiting: 9, KVCacheUsage: none}, nil, Open, "waiting 9 ≥ 8, missing_metrics: the engine's page does not say how full the KV cache is"},
			{2, Load{Waiting: 1, KVCacheUsage: 0.1}, nil, Closed, ""},
		}},
		"go": {Guard{Waiting: 8, KVCacheUsage: 0.9, OnMissingMetrics: BlindGo}, []step{
			{0, Load{}, errScrape, Closed, ""},
			{1, Load{Waiting: 9, KVCacheUsage: 1}, errScrape, Closed, ""}, // a load with an error is ignored
			{2, Load{Waiting: 9, KVCacheUsage: none}, nil, Open, "waiting 9 ≥ 8"},
			{3, Load{Waiting: none, KVCacheUsage: none}, nil, Closed, ""},
		}},
		"unsupported": {Guard{KVCacheUsage: 0.9, ResumeAfter: time.Minute}, []step{
			{0, Load{}, errScrape, Open, "missing_metrics: http://engine/metrics: connection refused"},
			{10, Load{Waiting: 2, KVCacheUsage: none, Engine: "llama.cpp", Pages: 2}, nil, Open, "missing_metrics: the engine's page does not say how full the KV cache is"},
			{20, Load{Waiting: 2, KVCacheUsage: none, Engine: "llama.cpp", Pages: 3}, nil, Open, "unsupported: llama.cpp has not shown kv_cache_usage on 3 pages; it shows waiting"},
			{30, Load{}, errScrape, Open, "missing_metrics: http://engine/metrics: connection refused, unsupported: llama.cpp has not shown kv_cache_usage on 3 pages; it shows waiting"},
			{60_040, Load{KVCacheUsage: 0.1, Pages: 3}, nil, Closed, ""}, // another version of the engine shows it
		}},
		"unsupported and ignored": {Guard{Waiting: 8, KVCacheUsage: 0.9, OnMissingMetrics: BlindGo}, []step{
			{0, Load{Waiting: 2, KVCacheUsage: none, Pages: 3}, nil, Closed, ""},
			{1, Load{Waiting: 8, KVCacheUsage: none, Pages: 3}, nil, Open, "waiting 8 ≥ 8"},
		}},
		"no figure is needed": {Guard{ErrorRatio: 0.5}, []step{{0, Load{Waiting: none, KVCacheUsage: none}, errScrape, Closed, ""}}},
	} {
		g := NewBreaker(c.limits)
		for _, s := range c.steps {
			before := g.open
			changed := g.Step(at(s.ms), s.load, s.err)
			now := fmt.Sprintf("%s at %d ms", name, s.ms)
			want(t, now, g.State(), s.state)
			want(t, now, g.Words(epoch.Add(time.Duration(s.ms)*time.Millisecond)), s.words)
			want(t, now+": changed", changed, g.open != before)
		}
	}
}

// The error ratio covers the last 60 slots of a second. It counts from 5 finished requests on.
func TestErrorRatio(t *testing.T) {
	h := newHealth()
	f := func(ms int, share float64, finished int) {
		t.Helper()
		s, n := h.Ratio(at(ms))
		want(t, fmt.Sprint("ratio at ", ms, " ms"), [2]float64{s, float64(n)}, [2]float64{share, float64(finished)})
	}
	f(0, 0, 0)
	for range 4 {
		h.Ended(at(100), true)
	}
	f(100, 1, 4)
	h.Ended(at(1500), false)
	f(1500, 0.8, 5)
	for range 5 {
		h.Ended(at(30_000), false)
	}
	f(59_999, 0.4, 10)
	f(60_000, 0, 6) // the slot of the failures has left the window
	f(89_999, 0, 5)
	f(90_000, 0, 0)
}

// The error ratio opens with at least 5 finished requests. Once open, one finished request is enough to judge it, and
// with none it keeps its last state.
func TestErrorRatioOpensAndCloses(t *testing.T) {
	g := NewBreaker(Guard{ErrorRatio: 0.5, ResumeAfter: 150 * time.Second})
	f := func(s int, ended string, state State, words string) {
		t.Helper()
		now := at(1000 * s)
		for _, o := range ended {
			g.Health.Ended(now, o == 'x')
		}
		g.Step(now, Load{}, nil)
		want(t, fmt.Sprint("holds at ", s, " s"), g.State(), state)
		want(t, fmt.Sprint("words at ", s, " s"), g.Words(now), words)
	}
	f(0, "xxxx", Closed, "")
	f(59, "", Closed, "")
	f(60, "xxxx", Closed, "") // the first four have left the window
	f(61, "o", HalfOpen, "error_ratio 0.8 ≥ 0.5")
	f(90, "x", HalfOpen, "error_ratio 0.833 ≥ 0.5")
	f(130, "", HalfOpen, "error_ratio 1 ≥ 0.5") // judged by one request
	f(150, "", HalfOpen, "error_ratio 1 ≥ 0.5") // no requests: keeps its state
	f(6000, "x", HalfOpen, "error_ratio 1 ≥ 0.5")
	f(6070, "o", HalfOpen, "error_ratio 1 ≥ 0.5 until 1m10s ago") // one good answer, and no failure in the minute
	f(6140, "", HalfOpen, "error_ratio 1 ≥ 0.5 until 2m20s ago")  // no requests again
	f(6150, "", Closed, "")
	f(6151, "xxxx", Closed, "")
}
