package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"net/url"
	"strings"
	"time"

	"replayd/internal/config"
	"replayd/internal/scrape"
	"replayd/internal/secret"
)

// probeTime bounds the reading of one engine's page.
const probeTime = 10 * time.Second

// Probe reads the metrics pages of running engines, and refuses each limit of a guard whose metric the page of its target lacks.
// engines maps target names to addresses; the address under "" is for all other targets. A target whose guards need no metric is
// not read.
func Probe(ctx context.Context, c config.Config, engines map[string]string, userAgent string) error {
	var faults config.Faults
	for _, t := range c.Targets {
		address := engines[t.Name]
		if address == "" {
			address = engines[""]
		}
		if address == "" {
			continue
		}
		limits := limitsOf(c, t.Name)
		if len(limits) == 0 {
			continue
		}
		load, err := look(ctx, t, address, userAgent)
		if err != nil {
			return fmt.Errorf("probe of target %s at %s: %w", t.Name, secret.Shown(address), err)
		}
		faults = append(faults, lacking(limits, load, secret.Shown(address))...)
	}
	return c.Refuse(faults)
}

// A figureLimit is a limit of a guard on a metric of the engine's page.
type figureLimit struct {
	path   string // of the key
	figure func(scrape.Load) float64
}

// limitsOf returns the limits of all workloads on a target.
func limitsOf(c config.Config, target string) (limits []figureLimit) {
	for i, w := range c.Workloads {
		if w.Target != target {
			continue
		}
		at := fmt.Sprintf("workloads[%d].guard.", i)
		if w.Guard.Waiting > 0 {
			limits = append(limits, figureLimit{at + "waiting", func(l scrape.Load) float64 { return l.Waiting }})
		}
		if w.Guard.KVCacheUsage > 0 {
			limits = append(limits, figureLimit{at + "kv_cache_usage", func(l scrape.Load) float64 { return l.KVCacheUsage }})
		}
	}
	return limits
}

func look(ctx context.Context, t config.Target, address, userAgent string) (scrape.Load, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return scrape.Load{}, fmt.Errorf("want an address such as http://127.0.0.1:8000, got %q", secret.Shown(address))
	}
	o := scrape.TargetOptions{
		Target: t.Name, URL: address, Interval: probeTime, HTTP: t.ScrapeHTTP().HTTPClientConfig,
		UserAgent: userAgent, Log: slog.New(slog.DiscardHandler),
	}
	if strings.HasSuffix(u.Path, "/metrics") {
		o.Page = address
	}
	for _, r := range t.Metrics.Map {
		o.Map = append(o.Map, r.Row())
	}
	return scrape.Look(ctx, o)
}

// lacking returns a fault for each limit whose metric the page lacks.
func lacking(limits []figureLimit, l scrape.Load, address string) (faults config.Faults) {
	shows := "neither figure"
	switch {
	case !math.IsNaN(l.Waiting) && !math.IsNaN(l.KVCacheUsage):
		return nil
	case !math.IsNaN(l.Waiting):
		shows = "waiting only"
	case !math.IsNaN(l.KVCacheUsage):
		shows = "kv_cache_usage only"
	}
	for _, limit := range limits {
		if math.IsNaN(limit.figure(l)) {
			faults = append(faults, config.Fault{
				Path: limit.path, Want: fmt.Sprintf("want a limit on a figure that the engine shows, got one that the page of %s at %s lacks: it shows %s", l.Engine, address, shows),
			})
		}
	}
	return faults
}
