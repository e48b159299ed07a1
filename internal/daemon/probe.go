package daemon

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"net/url"
	"strings"
	"time"

	"replayd/internal/config"
	"replayd/internal/fault"
	"replayd/internal/limits"
	"replayd/internal/scrape"
	"replayd/internal/secret"
)

// probeTime bounds the reading of one engine's page.
const probeTime = 10 * time.Second

// Probe reads the metrics pages of engines, and refuses each limit of a guard whose metric the page lacks. engines maps
// target names to addresses, "" is for all others. Of a target with an address, the engine is read if a guard of its
// workloads needs a metric, and the router if it has one.
func Probe(ctx context.Context, c config.Config, engines map[string]string, userAgent string) error {
	var faults fault.List
	for _, t := range c.Targets {
		address, needs := cmp.Or(engines[t.Name], engines[""]), limitsOf(c, t.Name)
		if address == "" {
			continue
		}
		if t.Router.URL != "" {
			if _, err := readPage(ctx, scrape.Routers, t, t.Router, t.Router.URL, userAgent); err != nil {
				return fmt.Errorf("probe of the router of target %s at %s: %w", t.Name, secret.Shown(t.Router.URL), err)
			}
		}
		if len(needs) == 0 {
			continue
		}
		load, err := readPage(ctx, scrape.Engines, t, t.Metrics, address, userAgent)
		if err != nil {
			return fmt.Errorf("probe of target %s at %s: %w", t.Name, secret.Shown(address), err)
		}
		faults = append(faults, lacking(needs, load, secret.Shown(address))...)
	}
	return c.Refuse(faults)
}

// A figureLimit is a limit of a guard on a figure of the engine's page.
type figureLimit struct {
	key   string
	limit limits.Limit
}

// limitsOf returns the limits of all workloads on a target.
func limitsOf(c config.Config, target string) (all []figureLimit) {
	for i, w := range c.Workloads {
		if w.Target != target {
			continue
		}
		for _, l := range w.Guard.OnFigures() {
			all = append(all, figureLimit{fmt.Sprintf("workloads[%d].guard.%s", i, l), l})
		}
	}
	return all
}

func readPage(ctx context.Context, of *scrape.Role, t config.Target, m config.Metrics, address, userAgent string) (limits.Load, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return limits.Load{}, fmt.Errorf("want an address such as http://127.0.0.1:8000, got %q", secret.Shown(address))
	}
	o := scrape.TargetOptions{
		Target: t.Name, URL: address, Page: m.URL, Interval: probeTime, HTTP: t.ScrapeHTTP(m),
		UserAgent: userAgent, Log: slog.New(slog.DiscardHandler), Map: m.Map,
	}
	page, err := url.Parse(m.URL)
	switch isPage := address == m.URL || strings.HasSuffix(u.Path, "/metrics"); {
	case isPage:
		o.Page = address
	case err == nil && page.Host != "": // the page that serve reads, at the engine that is named
		page.Host = u.Host
		o.Page = page.String()
	}
	load, err := scrape.Look(ctx, of, o)
	if err == nil || o.Page != "" || strings.Trim(u.Path, "/") == "" {
		return load, err
	}
	o.Page = address // which may be a page of another name
	if load, wrong := scrape.Look(ctx, of, o); wrong == nil {
		return load, nil
	}
	return load, err
}

// lacking returns a fault for each limit whose metric the page lacks.
func lacking(needs []figureLimit, l limits.Load, address string) (faults fault.List) {
	shows := "neither figure"
	switch {
	case !math.IsNaN(l.Waiting) && !math.IsNaN(l.KVCacheUsage):
		return nil
	case !math.IsNaN(l.Waiting):
		shows = "waiting only"
	case !math.IsNaN(l.KVCacheUsage):
		shows = "kv_cache_usage only"
	}
	for _, need := range needs {
		if math.IsNaN(l.Figure(need.limit)) {
			faults.Add(need.key, "want a limit on a figure that the engine shows, "+
				"got one that the page of %s at %s lacks: it shows %s", l.Engine, address, shows)
		}
	}
	return faults
}
