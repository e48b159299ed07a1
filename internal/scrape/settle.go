package scrape

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// settleEvery is the time between two readings of Settle. An engine counts a request a moment after its answer.
const settleEvery = 200 * time.Millisecond

// Settle reads the pages of the target's engines, beside the scrapes of Run, until two readings in a row have the same
// counts of finished requests, or stop is closed. Each page is read at least once, unless it never had figures. A
// reading that fails ends it for that engine, and ctx ends it for all.
func (t *Target) Settle(ctx context.Context, stop <-chan struct{}) {
	t.mu.Lock()
	endpoints := slices.Clone(t.endpoints)
	t.mu.Unlock()
	var all sync.WaitGroup
	for _, e := range endpoints {
		all.Go(func() { e.settle(ctx, stop) })
	}
	all.Wait()
}

func (e *endpoint) settle(ctx context.Context, stop <-chan struct{}) {
	select {
	case <-e.looked:
	case <-ctx.Done():
	}
	if e.engine.now().at.IsZero() {
		return
	}
	var before map[total]float64
	for {
		e.scrape(ctx)
		now, whole := e.engine.finished()
		if !whole || before != nil && maps.Equal(now, before) {
			return
		}
		before = now
		select {
		case <-time.After(settleEvery):
		case <-stop:
			return
		case <-ctx.Done():
			return
		}
	}
}

// finished returns the counts of finished requests on the latest page, or all its counts if it does not have those.
// whole is false if the latest scrape gave no whole page.
func (e *engine) finished() (counts map[total]float64, whole bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	counts = maps.Clone(e.history.totals)
	maps.DeleteFunc(counts, func(t total, _ float64) bool { return t.quantity != finished })
	if len(counts) == 0 {
		counts = e.history.totals // a page replaces the map
	}
	return counts, e.state.up()
}

// Keep exports the figures of the target's engines as they are, also after Run has returned.
func (t *Target) Keep() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.endpoints {
		t.c.use(e.address(), t.o.Map, MissedLimit*t.o.Interval)
	}
}
