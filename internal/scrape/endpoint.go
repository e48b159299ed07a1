package scrape

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"replayd/internal/scarce"
	"replayd/internal/secret"
)

// maxTimeout bounds a scrape, and a look for replicas.
const maxTimeout = 10 * time.Second

// An endpoint is the metrics page of one engine.
type endpoint struct {
	target  *Target
	replica string // host:port
	fetcher *Fetcher
	found   string        // the URL at which the page was found; empty: not found yet
	engine  *engine       // nil until Target.show
	turn    chan struct{} // capacity 1: full while the page is read
	looked  chan struct{} // closed when the page has been read once, well or not
	look    func()        // closes it, once
	copies  copies        // guarded by turn
	end     func()        // ends its scrapes; nil without replicas
}

// hasLooked reports whether the page has been read once.
func (e *endpoint) hasLooked() bool {
	select {
	case <-e.looked:
		return true
	default:
		return false
	}
}

func (e *endpoint) noun() string { return e.target.c.role.noun }

func (e *endpoint) address() address { return address{e.target.o.Target, e.replica} }

// scrape reads the page once. The timeout is three quarters of the interval, at most maxTimeout, so a hanging engine
// fails every scrape and not every second one.
func (e *endpoint) scrape(ctx context.Context) {
	select {
	case e.turn <- struct{}{}:
		defer func() { <-e.turn }()
	case <-ctx.Done():
		return
	}
	at := time.Now()
	within, cancel := context.WithTimeout(ctx, min(e.target.o.Interval*3/4, maxTimeout))
	defer cancel()
	wanted, told := e.target.vocabulary.Recognizer()
	p, err := e.get(within, wanted)
	if ctx.Err() != nil {
		return // shutdown is not a failure of the engine
	}
	if scarce.Met(err) { // nor is this
		e.unread(err)
		return
	}
	r := &Reading{}
	if p != nil {
		r = e.target.vocabulary.Read(p, told())
		if err == nil && r.Engine == "" {
			err = e.target.c.role.unknown(told())
		}
	}
	if err == nil {
		ended := int64(noRequests)
		if e.target.o.Answered != nil && r.counts() {
			ended = e.target.o.Answered()
		}
		if stale := e.copies.judge(p.stamp, at, e.target.o.Interval, ended); stale != nil {
			p, r, err = nil, &Reading{}, &Error{ReasonStale, fmt.Errorf("%s: %w", secret.Shown(e.found), stale)}
		}
	}
	defer e.look()
	before, now, restarted := e.engine.scraped(e.address(), at, p, r, err)
	if restarted {
		e.engine.restarts.Add(1)
		e.log().Warn(e.noun()+" has restarted", e.noun(), r.Engine)
	}
	if err != nil {
		e.engine.failures[slices.Index(reasons[:], now.reason)].Add(1)
	}
	e.engine.bad.Add(int64(now.bad))
	e.tell(&before, &now)
}

// unread passes over a scrape that was not made, because this process lacked a resource. The engine stays as up or down
// as it was seen last.
func (e *endpoint) unread(err error) {
	defer e.look()
	if e.engine.unread() {
		e.log().Error(e.noun()+" metrics are not scraped: replayd itself lacks a resource", "err", err)
	}
}

// get tries the target's URLs in order and keeps the first that returns a page, or part of one. After MissedLimit
// failed scrapes in a row it tries all URLs again.
func (e *endpoint) get(ctx context.Context, wanted func(name string) bool) (p *Page, err error) {
	urls := e.target.urls
	if e.found != "" && e.engine.now().missed < MissedLimit {
		urls = []string{e.found}
	}
	for _, u := range urls {
		p, err = e.fetcher.Get(ctx, u, wanted)
		if p != nil && p.Total > 0 {
			if e.found != u {
				e.found = u
				e.log().Info(e.noun()+" metrics page found", "url", secret.Shown(u))
			}
			return p, err
		}
		if fault := (*Error)(nil); !errors.As(err, &fault) || fault.Reason == ReasonConnect || fault.Reason == ReasonTimeout {
			return p, err // the server failed, so another path does not help
		}
	}
	return p, err
}

// tell logs the changes between two states.
func (e *endpoint) tell(before, now *state) {
	switch {
	case now.err != nil && (before.err == nil || before.reason != now.reason):
		e.log().Warn(e.noun()+" metrics cannot be scraped", "reason", now.reason, "err", now.err)
	case now.err == nil && before.err != nil:
		e.log().Info(e.noun()+" metrics are scraped again", e.noun(), now.engine)
	}
	if now.missed == MissedLimit && !now.at.IsZero() {
		e.log().Warn(e.noun()+" metrics are stale and no longer exported", "since", now.at.UTC().Format(time.RFC3339))
	}
	if now.first != "" && before.first == "" {
		e.log().Warn("samples on the "+e.noun()+"'s page cannot be used: what depends on them is left out", "samples", now.bad, "first", now.first)
	}
	if now.twice > 0 && before.twice == 0 {
		e.log().Warn("duplicate series on the "+e.noun()+"'s page: the first sample of each is used", "samples", now.twice)
	}
	if now.shared && !before.shared {
		e.log().Warn("several processes answer at this address in turn and their counters cannot be told apart: name them one by one with " + e.target.c.role.key + ".replicas")
	}
}

func (e *endpoint) log() *slog.Logger {
	return e.target.o.Log.With("target", e.target.o.Target, "replica", e.replica)
}
