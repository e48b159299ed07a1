package scrape

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// An endpoint is one engine's page.
type endpoint struct {
	target  *Target
	replica string // host:port
	fetcher *Fetcher
	found   string // the URL that had a page; empty: none has yet

	tally   *tally
	history history // the scraper's own

	mu    sync.Mutex
	state state
}

// A state is what is known of an engine. It is put in place whole.
type state struct {
	scraped  bool      // at least once
	missed   int       // scrapes in a row without figures
	at       time.Time // start of the latest one that gave figures; zero: none has
	duration time.Duration
	samples  int
	reason   Reason // of the latest error
	err      error  // nil: it gave a whole page
	engine   string // by the latest page that gave figures
	load     Load
	metrics  []prometheus.Metric // the reading's
	shared   bool                // several processes answer at this address
}

// run scrapes at instants that are whole intervals apart. A scrape that takes longer loses the instants that it covers.
func (e *endpoint) run(ctx context.Context) {
	defer e.fetcher.Close()
	defer e.put(state{scraped: true, missed: MissedLimit, err: errors.New("not scraped any more")})
	interval := e.target.o.Interval
	due := time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		e.scrape(ctx)
		for !due.After(time.Now()) {
			due = due.Add(interval)
		}
		timer.Reset(time.Until(due))
	}
}

// scrape reads the page once.
func (e *endpoint) scrape(ctx context.Context) {
	at := time.Now()
	within, cancel := context.WithTimeout(ctx, min(e.target.o.Interval, maxTimeout))
	defer cancel()
	wanted, told := e.target.vocabulary.Recognizer()
	p, err := e.get(within, wanted)
	if ctx.Err() != nil {
		return // the scraping ends, which is no fault of the engine's
	}
	var r Reading
	if p != nil {
		r = e.target.vocabulary.Read(p, told())
		if err == nil && r.Engine == "" {
			err = &Error{ReasonUnknown, errors.New("a metrics page, and of no engine that is known: name its families under metrics.map")}
		}
	}
	before := e.now()
	now := before.after(at, p, r, err)
	if now.missed == 0 {
		now.metrics = e.metrics(r)
		var restarted bool
		if restarted, now.shared = e.history.add(p.Start, r); restarted {
			e.tally.restarts.Add(1)
			e.log().Warn("engine has restarted", "engine", r.Engine)
		}
	}
	if err != nil {
		e.tally.failures[now.reason.place()].Add(1)
	}
	e.put(now)
	e.tell(before, now)
}

// get tries the addresses at which the page may be, and stays with the first that has one until that is lost.
func (e *endpoint) get(ctx context.Context, wanted func(name string) bool) (p *Page, err error) {
	urls := e.target.urls
	if e.found != "" && e.now().missed < MissedLimit {
		urls = []string{e.found}
	}
	for _, url := range urls {
		p, err = e.fetcher.Get(ctx, url, wanted)
		if err == nil && p.Total > 0 {
			if e.found != url {
				e.found = url
				e.log().Info("found the engine's page", "url", url)
			}
			return p, nil
		}
		if fault := (*Error)(nil); !errors.As(err, &fault) || fault.Reason == ReasonConnect || fault.Reason == ReasonTimeout {
			return p, err // it is the server that is at fault, and not the path
		}
	}
	return p, err
}

// after is the state that one scrape makes of s.
func (s state) after(at time.Time, p *Page, r Reading, err error) state {
	s.scraped, s.duration, s.err, s.reason, s.samples = true, time.Since(at), err, "", 0
	if p != nil {
		s.samples = p.Total
	}
	if err != nil {
		s.reason = ReasonConnect
		if fault := (*Error)(nil); errors.As(err, &fault) {
			s.reason = fault.Reason
		}
	}
	if len(r.Figures) > 0 || err == nil { // part of a page is something
		s.missed, s.at, s.engine, s.load = 0, at, r.Engine, r.load()
		return s
	}
	if s.missed++; s.missed >= MissedLimit {
		s.metrics = nil
	}
	return s
}

// tell logs what changed.
func (e *endpoint) tell(before, now state) {
	switch {
	case now.err != nil && (before.err == nil || before.reason != now.reason):
		e.log().Warn("engine's page cannot be read", "reason", now.reason, "err", now.err)
	case now.err == nil && before.err != nil:
		e.log().Info("engine's page is back", "engine", now.engine)
	}
	if now.missed == MissedLimit && !now.at.IsZero() {
		e.log().Warn("engine's figures are too old and are no longer shown", "since", now.at.UTC().Format(time.RFC3339))
	}
	if now.shared && !before.shared {
		e.log().Warn("several processes answer at this address in turn and their counters cannot be told apart: name them one by one with metrics.replicas")
	}
}

func (e *endpoint) log() *slog.Logger {
	return e.target.o.Log.With("target", e.target.o.Target, "replica", e.replica)
}

func (e *endpoint) now() state {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.state
}

func (e *endpoint) put(s state) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.state = s
}

// load is what this engine says of itself. One scrape that failed is no reason to think it unseen: what was read before
// it is one interval older.
func (e *endpoint) load() (Load, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch s := &e.state; {
	case !s.scraped:
		return unknown, errNotScraped
	case s.missed >= MissedLimit || s.at.IsZero():
		return unknown, s.err
	default:
		return s.load, nil
	}
}

var (
	unknown       = Load{Waiting: math.NaN(), KVCacheUsage: math.NaN()}
	errNotScraped = errors.New("not scraped yet")
)

// load adds up what is waiting of all ranks and finds the fullest of their caches.
func (r *Reading) load() Load {
	l := unknown
	for _, f := range r.Figures {
		switch f.Quantity.Name {
		case "requests_waiting":
			if math.IsNaN(l.Waiting) {
				l.Waiting = 0
			}
			l.Waiting += f.Value
		case "kv_cache_usage_ratio":
			if math.IsNaN(l.KVCacheUsage) || f.Value > l.KVCacheUsage {
				l.KVCacheUsage = f.Value
			}
		}
	}
	return l
}
