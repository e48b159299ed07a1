package daemon

import (
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"testing"
	"time"

	"replayd/internal/config"
	"replayd/internal/limits"
	"replayd/internal/measure"
	"replayd/internal/sim"
	"replayd/test/outside"
)

// routerPage serves the recorded page of a busy router, in whose queue 6 requests wait, and returns its address.
func routerPage(t *testing.T) string {
	body, err := os.ReadFile("../scrape/testdata/pages/smg_1.13.0_busy.txt")
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = w.Write(body)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/metrics"
}

// The router's figures are beside the engine's. The guard reads the engine's alone, so the router's queue of 6 does not
// open it. A reload adds, moves and removes the router's page.
func TestRouterBesideTheEngine(t *testing.T) {
	_, url := engine(t, func(*sim.Options) {})
	c := conf([]config.Target{target("sim", url)}, looped("w", "sim", write(t, "trace.jsonl", rows(90))))
	c.Web.EnableLifecycle = true
	c.Workloads[0].Guard = limits.Guard{Waiting: 5, OnMissingMetrics: limits.BlindGo} // the first rows may be due before the first scrape
	d := start(t, c)
	d.until("the engine alone", func(p outside.Page) bool {
		return p.Sum("replayd_engine_up", "sim") == 1 && p["replayd_router_up"] == nil
	})
	for _, page := range []string{routerPage(t), routerPage(t)} { // each at an address of its own
		d.reload(func(c *config.Config) {
			c.Targets = slices.Clone(c.Targets)
			c.Targets[0].Router.URL, c.Targets[0].Router.Interval = page, time.Second
		})
		d.until("the router's figures", func(p outside.Page) bool {
			return p.Sum("replayd_router_up", "sim") == 1 && p.Sum("replayd_router_requests_waiting", "sim") == 6
		})
		for range 30 {
			d.next()
		}
	}
	p := d.page()
	if open := p.Sum("replayd_guard_open", "w", "waiting"); open != 0 {
		t.Error("want the guard closed: the engine has no queue")
	}
	if got := p.Sum("replayd_requests_dropped_total", "w", string(measure.Guarded)); got != 0 {
		t.Errorf("want nothing held back by the guard, got %v requests", got)
	}
	if got := p.Sum("replayd_engine_requests_waiting", "sim"); got > 5 {
		t.Errorf("want the engine's own queue, got %v", got)
	}
	d.reload(func(c *config.Config) {
		c.Targets = slices.Clone(c.Targets)
		c.Targets[0].Router.URL = ""
	})
	d.until("no router", func(p outside.Page) bool {
		return p["replayd_router_up"] == nil && p.Sum("replayd_engine_up", "sim") == 1
	})
	d.stop()
	d.end()
}
