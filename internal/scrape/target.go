package scrape

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	commoncfg "github.com/prometheus/common/config"
)

// Limits of a target.
const (
	// MissedLimit is after how many failed scrapes in a row an engine's figures are no longer shown or believed.
	MissedLimit = 3

	maxReplicas  = 64
	maxTimeout   = 10 * time.Second
	resolveEvery = 30 * time.Second
)

// TargetOptions are what the scraping of one target depends on.
type TargetOptions struct {
	Target   string        // its name on the page
	URL      string        // of the requests; the page's is found from it
	Page     string        // of the page; empty: found
	Replicas string        // a DNS name, with or without a port, each of whose addresses is an engine; empty: one engine
	Interval time.Duration // from scrape to scrape
	HTTP     commoncfg.HTTPClientConfig
	Map      []Row
	Hostname string // this machine's

	UserAgent string
	Log       *slog.Logger
	Resolver  func(ctx context.Context, name string) ([]netip.Addr, error) // nil: the system's
}

// A Target scrapes the engines behind one target, each at its own address. While it runs its Collector shows it.
type Target struct {
	c          *Collector
	o          TargetOptions
	vocabulary *Vocabulary
	urls       []string // to be tried in this order

	mu        sync.Mutex
	endpoints []*endpoint // in the order of their addresses
	trouble   error       // why there are none
}

// NewTarget checks the options. Nothing is asked before Run.
func (c *Collector) NewTarget(o TargetOptions) (*Target, error) {
	v, err := NewVocabulary(o.Map)
	if err != nil {
		return nil, err
	}
	t := &Target{c: c, o: o, vocabulary: v, trouble: errNotScraped}
	if t.urls, err = pages(o.URL, o.Page); err != nil {
		return nil, err
	}
	if o.Replicas == "" {
		u, err := url.Parse(t.urls[0])
		if err != nil {
			return nil, err
		}
		e, err := t.endpoint(replicaOf(u.Host, o.Hostname), "")
		if err != nil {
			return nil, err
		}
		t.endpoints, t.trouble = []*endpoint{e}, nil
	}
	return t, nil
}

// replicaOf is host:port of an engine's page. A loopback address is another engine on every machine: there the machine's own
// name stands for it, so that the engines of a fleet of sidecars stay apart.
func replicaOf(host, machine string) string {
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		name, port = strings.Trim(host, "[]"), ""
	}
	ip, err := netip.ParseAddr(name)
	switch {
	case machine == "" || name != "localhost" && (err != nil || !ip.IsLoopback()):
		return host
	case port == "":
		return machine
	default:
		return net.JoinHostPort(machine, port)
	}
}

// pages are the addresses at which an engine's page may be. TensorRT-LLM's stands first: its /metrics is something else,
// and reading empties it.
func pages(target, page string) ([]string, error) {
	if page != "" {
		return []string{page}, nil
	}
	u, err := url.Parse(target)
	if err != nil {
		return nil, err
	}
	base := &url.URL{Scheme: u.Scheme, Host: u.Host}
	urls := []string{base.JoinPath("prometheus/metrics").String(), base.JoinPath("metrics").String()}
	// Behind a gateway the engine may have a path of its own before /v1.
	if prefix := strings.TrimSuffix(strings.TrimRight(u.Path, "/"), "/v1"); prefix != "" {
		base.Path = prefix
		urls = append([]string{base.JoinPath("prometheus/metrics").String(), base.JoinPath("metrics").String()}, urls...)
	}
	return urls, nil
}

// endpoint makes the one for an engine. Connections go to the address, or where the URL says when it is empty.
func (t *Target) endpoint(replica, address string) (*endpoint, error) {
	f, err := NewFetcher(FetchOptions{HTTP: t.o.HTTP, Address: address, UserAgent: t.o.UserAgent})
	if err != nil {
		return nil, err
	}
	return &endpoint{target: t, replica: cut(replica), fetcher: f}, nil
}

// Run scrapes until ctx is cancelled.
func (t *Target) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	start := func(ctx context.Context, e *endpoint) {
		a := address{t.o.Target, e.replica}
		e.tally = t.c.use(a)
		running.Go(func() {
			defer t.c.release(a)
			e.run(ctx)
		})
	}
	if t.o.Replicas == "" {
		start(ctx, t.endpoints[0])
	}
	t.c.show(t)
	defer t.c.hide(t)
	if t.o.Replicas == "" {
		<-ctx.Done()
		return ctx.Err()
	}
	ends := map[string]context.CancelFunc{}
	defer func() {
		for _, end := range ends {
			end()
		}
	}()
	ticker := time.NewTicker(resolveEvery)
	defer ticker.Stop()
	for {
		if err := t.follow(ctx, ends, start); err != nil && ctx.Err() == nil {
			t.note(err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// follow asks for the replicas' addresses, starts what is new and ends what is gone. A name that does not resolve
// changes nothing: it is the name server that is lost, and not the engines.
func (t *Target) follow(ctx context.Context, ends map[string]context.CancelFunc, start func(context.Context, *endpoint)) error {
	addresses, err := t.resolve(ctx)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.trouble = nil
	t.endpoints = slices.DeleteFunc(t.endpoints, func(e *endpoint) bool {
		gone := !slices.Contains(addresses, e.replica)
		if gone {
			ends[e.replica]()
			delete(ends, e.replica)
			t.o.Log.Info("engine is gone from its name", "target", t.o.Target, "replica", e.replica, "name", t.o.Replicas)
		}
		return gone
	})
	for _, a := range addresses {
		if ends[a] != nil {
			continue
		}
		e, err := t.endpoint(a, a)
		if err != nil {
			return err
		}
		var own context.Context
		own, ends[a] = context.WithCancel(ctx)
		start(own, e)
		t.endpoints = append(t.endpoints, e)
	}
	return nil
}

// resolve gives address:port of every replica.
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
	lookup := t.o.Resolver
	if lookup == nil {
		lookup = func(ctx context.Context, name string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", name)
		}
	}
	found, err := lookup(ctx, name)
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
		t.o.Log.Warn("more replicas than are scraped", "target", t.o.Target, "name", t.o.Replicas, "replicas", len(addresses), "scraped", maxReplicas)
		addresses = addresses[:maxReplicas]
	}
	return addresses, nil
}

// note logs why there are no replicas, when that is news.
func (t *Target) note(err error) {
	t.mu.Lock()
	known := t.trouble != nil && t.trouble.Error() == err.Error()
	t.trouble = err
	t.mu.Unlock()
	if !known {
		t.o.Log.Warn("replicas cannot be found", "target", t.o.Target, "name", t.o.Replicas, "err", err)
	}
}

func (t *Target) each() []*endpoint {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.endpoints)
}

// A Load is how busy the engines behind a target are. NaN: their pages do not say.
type Load struct {
	Waiting      float64 // requests in the engines' queues, all together
	KVCacheUsage float64 // of the fullest cache, 0 to 1
}

// Load gives the latest figures. The error says which engine is not seen: what is not seen must not be taken for idle.
func (t *Target) Load() (Load, error) {
	l := unknown
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.endpoints) == 0 {
		return l, t.trouble
	}
	for i, e := range t.endpoints {
		one, err := e.load()
		if err != nil {
			return l, fmt.Errorf("engine %s: %w", e.replica, err)
		}
		if i == 0 {
			l = one
			continue
		}
		l.Waiting += one.Waiting
		l.KVCacheUsage = max(l.KVCacheUsage, one.KVCacheUsage) // NaN stays NaN
	}
	return l, nil
}
