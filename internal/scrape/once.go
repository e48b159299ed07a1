package scrape

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
)

// Look scrapes one engine once and returns its load. The scrape takes at most three quarters of o.Interval. o.Replicas
// is ignored.
func Look(ctx context.Context, o TargetOptions) (Load, error) {
	o.Replicas = ""
	t, err := NewCollector(prometheus.NewRegistry()).NewTarget(o)
	if err != nil {
		return unknown, err
	}
	t.Show()
	e := t.endpoints[0]
	defer e.fetcher.Close()
	e.scrape(ctx)
	if err := context.Cause(ctx); err != nil {
		return unknown, err
	}
	return t.Load()
}
