package scrape

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
)

// Look reads the page of one engine once and gives its figures. The interval of the options bounds how long that may take; their
// replicas are not asked.
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
