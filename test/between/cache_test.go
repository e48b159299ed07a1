//go:build between

package between_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"replayd/test/outside"
)

// A page of the engine out of a cache is no page of the engine: the guard does not go by it.
func TestCachedPage(t *testing.T) {
	programs := install(t)
	e := newEngine(t, stream(0, 0, tokens))
	b := start(t, programs, varnish, e)
	s := outside.NewStageAlone(t, binary)
	s.Write(t, fmt.Sprintf(`targets: [{name: engine, url: %q, model: m, metrics: {interval: 1s}}]
workloads:
  - {name: w, trace: {path: %q}, repeat: {mode: once}, prompt: {calibrate: false}, guard: {waiting: 3}}
`, b.url(), outside.Write(t, s.Dir, "trace.jsonl", trace([]time.Duration{0, time.Hour}))))
	p, _ := s.Serve(t)
	outside.Until(t, func() error {
		if !strings.Contains(p.Said(t), "engine metrics page found") {
			return errors.New("want the engine's page found")
		}
		return nil
	})
	e.waiting.Store(100)
	// Varnish keeps the page for 120 s by itself.
	page := outside.See(t, s.URL(), "three stale scrapes", func(p outside.Page) bool {
		return p.Sum("replayd_engine_scrape_errors_total", "stale") >= 3
	})
	if up := page.Sum("replayd_engine_up"); up != 0 {
		t.Errorf("want no engine by a cached page, got replayd_engine_up %v", up)
	}
	outside.See(t, s.URL(), "a guard that misses the engine's page", func(p outside.Page) bool {
		return p.Sum("replayd_guard_open", "missing_metrics") == 1
	})
	// A busy machine may scrape too late in between, which is told, and then that the page is stale once more.
	log := p.Said(t)
	failed, stale := strings.Count(log, "engine metrics cannot be scraped"), strings.Count(log, "reason=stale")
	if others := failed - stale + strings.Count(log, "engine metrics are scraped again"); stale > 1+others {
		t.Errorf("want one line about stale pages, got %d, and %d about others", stale, others)
	}
	said(t, p, `engine metrics cannot be scraped.*reason=stale.*(cache's copy|the one before again)`)
}
