package result

import (
	"strings"
	"testing"
	"time"

	"replayd/internal/measure"
)

// Cached prompt tokens beyond what the load explains are reported with their share. Template tokens are part of the
// load.
func TestCache(t *testing.T) {
	ok := func(told bool, prompt, cached, overhead int) measure.Request {
		return measure.Request{
			Outcome: measure.OK, InputTokens: 100, Overhead: overhead,
			Usage: measure.Usage{Prompt: prompt, Cached: cached, CacheReported: told},
		}
	}
	counter := func(name string, from, to float64) ServerSeries {
		now := time.Unix(0, 0)
		return ServerSeries{Name: "replayd_engine_prefix_cache_" + name + "_tokens_total", Kind: Counter, Times: []time.Time{now, now.Add(time.Second)}, Values: []float64{from, to}}
	}
	failed := ok(true, 100, 100, 0)
	failed.Outcome = measure.HTTP5xx
	engine := []ServerSeries{counter("hits", 1000, 1080), counter("queries", 5000, 5200)}
	f := func(name string, tokens int64, shared bool, beside []ServerSeries, beyond float64, known bool, says string, all ...measure.Request) {
		t.Helper()
		m := NewSummary(nil, measure.SessionSLO{})
		for i := range all {
			m.Observe(&all[i])
		}
		c := m.Cache(tokens, shared, beside)
		if got, ok := c.Beyond(); got != beyond || ok != known {
			t.Errorf("%s: %v of the prompts beyond the load, known %v, want %v, %v", name, got, ok, beyond, known)
		}
		if warm := c.Warm(); !strings.Contains(c.String(), says) || (warm != "") != (beyond >= 0.01) {
			t.Errorf("%s: says %q and %q, want %q", name, c, warm, says)
		}
	}
	f("cold", 0, true, engine, 0, true, "0.0 % of 200 prompt tokens (by the answers); the load explains at most 0.0 %", ok(true, 100, 0, 0), ok(true, 100, 0, 0))
	f("warm", 0, true, nil, 0.75, true, "75.0 % of 200", ok(true, 100, 80, 0), ok(true, 100, 70, 0))
	f("explained", 150, true, nil, 0, true, "explains at most 75.0 %", ok(true, 100, 80, 0), ok(true, 100, 70, 0))
	f("in part", 50, true, nil, 0.5, true, "explains at most 25.0 %", ok(true, 100, 80, 0), ok(true, 100, 70, 0))
	f("a template that was taken off", 0, true, nil, 0, true, "16.0 % of 200", ok(true, 100, 16, 20), ok(true, 100, 16, 20))
	f("a template on top", 0, true, nil, 0, true, "of 240", ok(true, 120, 16, 0), ok(true, 120, 16, 0))
	f("failed ones are not counted", 0, true, nil, 0, true, "of 100", ok(true, 100, 0, 0), failed)
	f("told only where there is some", 0, true, engine, 0.45, true, "45.0 % of 200", ok(false, 100, 0, 0), ok(true, 100, 90, 0))
	f("texts", 0, false, nil, 0, false, "90.0 % of 100 prompt tokens (by the answers); how much of it the load explains is not known", ok(true, 100, 90, 0))
	f("by the server's counters", 0, true, engine, 0.4, true, "40.0 % of 200 prompt tokens (by the server's counters", ok(false, 100, 0, 0))
	outside := counter("hits", 30, 90)
	outside.Name = "replayd_engine_external_prefix_cache_hits_tokens_total"
	f("a cache outside the engine", 0, false, []ServerSeries{counter("hits", 0, 10), counter("queries", 0, 100), outside}, 0, false,
		"70.0 % of 100 prompt tokens", ok(false, 100, 0, 0))
	f("counters that stand still", 0, true, []ServerSeries{counter("hits", 1, 1), counter("queries", 1, 1)}, 0, false, "unknown", ok(false, 100, 0, 0))
	f("no queries", 0, true, engine[:1], 0, false, "unknown", ok(false, 100, 0, 0))
	f("nobody says", 0, true, nil, 0, false, "unknown", ok(false, 100, 0, 0))
}

// A shard may hit prompts that another shard sent, so only cached tokens are added up.
func TestCacheOfShards(t *testing.T) {
	explained := int64(7)
	a, b := &Cache{Source: CacheUsage, Prompt: 100, Cached: 40, Explained: &explained}, &Cache{Source: CacheUsage, Prompt: 50, Cached: 10}
	sum := a.Add(b)
	if _, known := sum.Beyond(); known || sum.Prompt != 150 || sum.Cached != 50 || sum.Source != CacheUsage {
		t.Errorf("%+v", *sum)
	}
	engine := &Cache{Source: CacheEngine, Prompt: 100}
	for _, c := range []*Cache{a.Add(nil), (*Cache)(nil).Add(a), a.Add(engine), engine.Add(engine)} {
		if c != nil {
			t.Errorf("want none known, got %+v", *c)
		}
	}
}
