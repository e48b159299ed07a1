package scrape

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	commoncfg "github.com/prometheus/common/config"

	"replayd/internal/limits"
	"replayd/internal/secret"
)

// Limits of a target.
const (
	maxReplicas  = 64
	resolveEvery = 30 * time.Second
)

// TargetOptions configures the scraping of one target.
type TargetOptions struct {
	Target   string        // value of the target label
	URL      string        // URL of the requests; the page's URL is derived from it
	Page     string        // URL of the metrics page; empty: derived from URL
	Replicas string        // a DNS name, with or without a port; each of its addresses is an engine. Empty: one engine
	Interval time.Duration // scrape interval
	HTTP     commoncfg.HTTPClientConfig
	Map      []Row
	Hostname string // host name of this machine

	UserAgent string
	Hidden    func() secret.Set // as FetchOptions has it
	Answered  func() int64      // requests that have ended well, if the only engine's page counts them all; nil: it need not
	Log       *slog.Logger
	Dial      Dialer                                                       // nil: net.Dialer
	resolver  func(ctx context.Context, name string) ([]netip.Addr, error) // nil: the system resolver
}

// A Target scrapes the engines behind one target, each at its own address.
type Target struct {
	c          *Collector
	o          TargetOptions
	vocabulary *Vocabulary
	urls       []string // candidates for the page's URL, in the order in which they are tried

	mu        sync.Mutex
	endpoints []*endpoint
	lost      error // why the replicas cannot be resolved; the known endpoints stay
	missing   error // why some replicas are not scraped
	complete  bool  // every replica has been scraped at least once
}

// NewTarget returns a target, or an error if its options are invalid. It makes no request.
func (c *Collector) NewTarget(o TargetOptions) (*Target, error) {
	v, err := NewVocabulary(c.role, o.Map)
	if err != nil {
		return nil, err
	}
	t := &Target{c: c, o: o, vocabulary: v, lost: ErrNotScraped}
	if t.urls, err = pageURLs(o.URL, o.Page); err != nil {
		return nil, err
	}
	replica, at := "", "127.0.0.1:1" // with replicas: only checks that the files for TLS and credentials exist
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

// replicaOf returns the replica label, host:port. For a loopback address the host is the machine's name, so that the
// engines of several machines with sidecars stay distinct.
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

// pageURLs returns the URLs at which an engine's page may be. TensorRT-LLM's path is first: its /metrics is another page,
// and reading that page empties it.
func pageURLs(target, page string) ([]string, error) {
	if page != "" {
		return []string{page}, nil
	}
	u, err := url.Parse(target)
	if err != nil {
		return nil, err
	}
	var urls []string
	prefix := strings.TrimSuffix(strings.TrimRight(u.Path, "/"), "/v1") // a gateway may put one before /v1
	for _, path := range slices.Compact([]string{prefix, ""}) {
		base := &url.URL{Scheme: u.Scheme, Host: u.Host, Path: path}
		urls = append(urls, base.JoinPath("prometheus/metrics").String(), base.JoinPath("metrics").String())
	}
	return urls, nil
}

// endpoint returns the endpoint for one engine. Connections go to address; if it is empty, they go to the URL's host,
// and each scrape opens a new connection, because a kept connection would always reach the same engine behind a virtual
// IP.
func (t *Target) endpoint(replica, address string) (*endpoint, error) {
	f, err := NewFetcher(FetchOptions{HTTP: t.o.HTTP, Address: address, Reconnect: address == "", UserAgent: t.o.UserAgent, Dial: t.o.Dial, Hidden: t.o.Hidden})
	if err != nil {
		return nil, err
	}
	looked := make(chan struct{})
	return &endpoint{
		target: t, replica: string(secret.Set(nil).Text(replica, maxLabel)), fetcher: f, turn: make(chan struct{}, 1),
		looked: looked, look: sync.OnceFunc(func() { close(looked) }),
	}, nil
}

// Show exports the target's engines. Run exports them as well, and removes them when it returns.
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

// Restarts returns the number of restarts of the engines behind the target, as their pages tell.
func (t *Target) Restarts() (n int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.endpoints {
		if e.engine != nil {
			n += e.engine.restarts.Load()
		}
	}
	return n
}

// Generated returns the output tokens that the engines have generated since their first pages, over restarts. known is false where a page does not count
// them.
func (t *Target) Generated() (tokens float64, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known = len(t.endpoints) > 0
	for _, e := range t.endpoints {
		n, counts := 0.0, false
		if e.engine != nil {
			n, counts = e.engine.generated()
		}
		tokens, known = tokens+n, known && counts
	}
	return tokens, known
}

// Load returns the latest figures. It returns an error that names the engine if an engine cannot be scraped, because an
// engine with unknown load must not be taken for idle. A replica that has just joined is included after its first
// scrape. Load does not block and does not allocate.
func (t *Target) Load() (limits.Load, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.missing != nil:
		return limits.Unknown(), t.missing
	case len(t.endpoints) == 0:
		return limits.Unknown(), t.lost
	}
	sum, seen, all := limits.Unknown(), false, true
	for _, e := range t.endpoints {
		if e.engine == nil {
			return limits.Unknown(), ErrNotScraped
		}
		one, known, err := e.engine.load(t.o.Interval)
		switch {
		case !known && e.hasLooked():
			return one, err
		case !known:
			all = false
		case err != nil:
			return limits.Unknown(), err
		case !seen:
			sum, seen = one, true
		default:
			sum.Add(one)
		}
	}
	t.complete = t.complete || all
	if !seen || !t.complete { // a replica that was never scraped must not be taken for idle
		return limits.Unknown(), ErrNotScraped
	}
	return sum, nil
}

// Look scrapes one page of a role once and returns its load. The scrape takes at most three quarters of o.Interval.
// o.Replicas is ignored.
func Look(ctx context.Context, of *Role, o TargetOptions) (limits.Load, error) {
	o.Replicas = ""
	t, err := NewCollector(prometheus.NewRegistry(), of).NewTarget(o)
	if err != nil {
		return limits.Unknown(), err
	}
	t.Show()
	e := t.endpoints[0]
	defer e.fetcher.Close()
	e.scrape(ctx)
	if err := context.Cause(ctx); err != nil {
		return limits.Unknown(), err
	}
	return t.Load()
}
