package scrape

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	commoncfg "github.com/prometheus/common/config"
)

// Limits of a target.
const (
	// MissedLimit is after how many failed scrapes in a row an engine's figures are no longer shown or believed.
	MissedLimit = 3

	// SettledPages is after how many whole pages of one engine a figure that is on none of them is no longer waited for.
	SettledPages = 3

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
	Dial      Dialer                                                       // nil: TCP's
	resolver  func(ctx context.Context, name string) ([]netip.Addr, error) // nil: the system's
}

// A Target scrapes the engines behind one target, each at its own address.
type Target struct {
	c          *Collector
	o          TargetOptions
	vocabulary *Vocabulary
	urls       []string // to be tried in this order

	mu        sync.Mutex
	endpoints []*endpoint
	lost      error // why nothing is known of where they are; what is known stays
	missing   error // why not all of them are scraped
	complete  bool  // every one was looked at once
}

// NewTarget checks the options. Nothing is asked before Run.
func (c *Collector) NewTarget(o TargetOptions) (*Target, error) {
	v, err := NewVocabulary(o.Map)
	if err != nil {
		return nil, err
	}
	t := &Target{c: c, o: o, vocabulary: v, lost: ErrNotScraped}
	if t.urls, err = pages(o.URL, o.Page); err != nil {
		return nil, err
	}
	replica, at := "", "127.0.0.1:1" // with replicas: only to see whether the files are there that a connection needs
	if o.Replicas == "" {
		u, err := url.Parse(t.urls[0])
		if err != nil {
			return nil, err
		}
		replica, at = replicaOf(u.Host, o.Hostname), ""
	}
	e, err := t.endpoint(replica, at)
	if err != nil {
		return nil, err
	}
	if o.Replicas == "" {
		t.endpoints, t.lost = []*endpoint{e}, nil
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

// endpoint makes the one for an engine. Connections go to the address, or where the URL says when it is empty: then each
// scrape has its own, since a kept one would always lead to the same of several engines behind a virtual address.
func (t *Target) endpoint(replica, address string) (*endpoint, error) {
	f, err := NewFetcher(FetchOptions{HTTP: t.o.HTTP, Address: address, Reconnect: address == "", UserAgent: t.o.UserAgent, Dial: t.o.Dial})
	if err != nil {
		return nil, err
	}
	return &endpoint{target: t, replica: cut(replica), fetcher: f}, nil
}

// Show has what is known of the target's engines on the page from now on; Run ends that.
func (t *Target) Show() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.endpoints {
		t.show(e)
	}
}

func (t *Target) show(e *endpoint) {
	if e.engine == nil {
		e.engine = t.c.use(e.address(), t.o.Map, MissedLimit*t.o.Interval)
	}
}

// Run scrapes until ctx is cancelled.
func (t *Target) Run(ctx context.Context) error {
	t.Show()
	var running sync.WaitGroup
	defer running.Wait()
	start := func(ctx context.Context, e *endpoint) {
		running.Go(func() {
			defer t.c.release(e.address())
			e.run(ctx)
		})
	}
	if t.o.Replicas == "" {
		start(ctx, t.endpoints[0])
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
		t.follow(ctx, ends, start)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// A Load is how busy the engines behind a target are. NaN: their pages do not say.
type Load struct {
	Waiting      float64 // requests in the engines' queues, all together
	KVCacheUsage float64 // of the fullest cache, 0 to 1

	Engine string // the name of the engines; "": they differ
	Pages  int    // whole pages of that engine that were read, those of the engine with the fewest; at most SettledPages
}

// Load gives the latest figures. The error says which engine is not seen: what is not seen must not be taken for idle. One that
// has just joined counts from its first scrape on. It does not wait, and allocates nothing.
func (t *Target) Load() (Load, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.missing != nil:
		return unknown, t.missing
	case len(t.endpoints) == 0:
		return unknown, t.lost
	}
	sum, seen, all := unknown, false, true
	for _, e := range t.endpoints {
		if e.engine == nil {
			return unknown, ErrNotScraped
		}
		one, known, err := e.engine.load(t.o.Interval)
		switch {
		case !known && e.looked.Load():
			return unknown, err
		case !known:
			all = false
		case err != nil:
			return unknown, err
		case !seen:
			sum, seen = one, true
		default:
			sum.Waiting += one.Waiting
			sum.KVCacheUsage = max(sum.KVCacheUsage, one.KVCacheUsage) // NaN stays NaN
			sum.Pages = min(sum.Pages, one.Pages)
			if sum.Engine != one.Engine {
				sum.Engine = ""
			}
		}
	}
	t.complete = t.complete || all
	if !seen || !t.complete { // one that was never seen must not be taken for idle
		return unknown, ErrNotScraped
	}
	return sum, nil
}
