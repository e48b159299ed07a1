package scrape

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"time"
)

// Run scrapes until ctx is cancelled.
func (t *Target) Run(ctx context.Context) error {
	t.Show()
	var running sync.WaitGroup
	defer running.Wait()
	start := func(ctx context.Context, e *endpoint) {
		running.Go(func() {
			defer t.c.release(e.address())
			defer e.fetcher.Close()
			Every(ctx, t.o.Interval, func() time.Duration {
				e.scrape(ctx)
				return t.o.Interval
			})
		})
	}
	if t.o.Replicas == "" {
		start(ctx, t.endpoints[0])
		<-ctx.Done()
		return ctx.Err()
	}
	ticker := time.Tick(resolveEvery)
	for {
		t.follow(ctx, start)
		select {
		case <-ticker:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// follow resolves the replicas' addresses, starts new endpoints and stops those that are gone. If the name does not
// resolve, nothing changes: the DNS server failed, not the engines.
func (t *Target) follow(ctx context.Context, start func(context.Context, *endpoint)) {
	addresses, failure := t.resolve(ctx)
	if ctx.Err() != nil {
		return
	}
	if len(addresses) == 0 {
		t.note(&t.lost, failure, nil)
		return
	}
	log := t.o.Log.With("target", t.o.Target, "name", t.o.Replicas)
	kept := []*endpoint{}
	for _, e := range t.endpoints { // only this goroutine replaces them
		if slices.Contains(addresses, e.replica) {
			kept = append(kept, e)
			continue
		}
		e.end()
		log.Info("replica is no longer in DNS: scraping stopped", "replica", e.replica)
	}
	for _, a := range addresses {
		if slices.ContainsFunc(kept, func(e *endpoint) bool { return e.replica == a }) {
			continue
		}
		e, err := t.endpoint(a, a)
		if err != nil {
			failure = errors.Join(failure, err)
			continue
		}
		t.show(e)
		kept = append(kept, e)
		var own context.Context
		own, e.end = context.WithCancel(ctx)
		start(own, e)
	}
	t.note(&t.missing, failure, kept)
}

// note stores failure in which and logs it if there was none before. If endpoints is not nil, it replaces the target's
// endpoints and clears t.lost.
func (t *Target) note(which *error, failure error, endpoints []*endpoint) {
	t.mu.Lock()
	before := *which
	*which = failure
	if endpoints != nil {
		t.endpoints, t.lost = endpoints, nil
	}
	t.mu.Unlock()
	if failure != nil && (before == nil || errors.Is(before, ErrNotScraped)) {
		t.o.Log.Warn("some or all replicas cannot be resolved", "target", t.o.Target, "name", t.o.Replicas, "err", failure)
	}
}

// resolve returns address:port of each replica to scrape, and an error if some or all are missing.
func (t *Target) resolve(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, maxTimeout)
	defer cancel()
	u, err := url.Parse(t.urls[0])
	if err != nil {
		return nil, err
	}
	name, port := t.o.Replicas, u.Port()
	if h, p, err := net.SplitHostPort(t.o.Replicas); err == nil {
		name, port = h, p
	}
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	lookup := t.o.resolver
	if lookup == nil {
		lookup = func(ctx context.Context, name string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", name)
		}
	}
	found, err := lookup(ctx, name)
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("%s has no address", name)
	}
	if err != nil {
		return nil, fmt.Errorf("replicas: %w", err)
	}
	addresses := make([]string, 0, len(found))
	for _, a := range found {
		addresses = append(addresses, net.JoinHostPort(a.Unmap().String(), port))
	}
	slices.Sort(addresses)
	addresses = slices.Compact(addresses)
	if len(addresses) > maxReplicas {
		err = fmt.Errorf("replicas: %s has %d addresses, and only the first %d are scraped", name, len(addresses), maxReplicas)
		addresses = addresses[:maxReplicas]
	}
	return addresses, err
}
