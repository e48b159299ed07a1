package scrape

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// An engine holds everything known about one address.
type engine struct {
	users int       // users, left and rows are guarded by Collector.mu
	left  time.Time // when the last user released the engine
	rows  []Row     // the user's rows, from metrics.map

	// Counted by replayd itself.
	restarts atomic.Int64
	failures [len(reasons)]atomic.Int64

	mu      sync.Mutex
	state   state
	history history
}

// A state is the result of the latest scrapes. It is replaced as a whole.
type state struct {
	scraped  bool                // scraped at least once
	missed   int                 // scrapes in a row without figures
	at       time.Time           // start of the latest scrape with figures; zero: none yet
	duration time.Duration       // of the latest scrape
	samples  int                 // of the latest scrape
	reason   Reason              // of the latest error
	err      error               // nil: the latest scrape returned a whole page
	engine   string              // named by the latest page with figures
	metrics  []prometheus.Metric // exported on /metrics
	shared   bool                // several processes answer at this address
	twice    int                 // duplicate samples on the first page with duplicates; 0: none so far

	// For the guard, which uses whole pages only.
	load    Load      // from the latest whole page
	whole   time.Time // wall-clock time of that page: timers and Go's monotonic clock stop while the machine is suspended
	failed  int       // failed scrapes in a row since that page
	loadErr error     // why load is invalid; nil: it is valid
}

// Errors of a load that is not known.
var (
	ErrNotScraped = errors.New("not scraped yet")
	errOld        = errors.New("its values are stale: this process was not running")
)

// after returns the state that follows s after one scrape. Figures of a partial page are exported too.
func (s state) after(a address, at time.Time, p *Page, r *Reading, err error) state {
	s.scraped, s.duration, s.err, s.reason, s.samples = true, time.Since(at), err, "", 0
	if p != nil {
		s.samples = p.Total
		s.twice = cmp.Or(s.twice, p.Twice)
	}
	if err == nil {
		pages := 1
		if r.Engine == s.load.Engine {
			pages = min(s.load.Pages+1, SettledPages)
		}
		s.load, s.whole, s.failed, s.loadErr = r.load(), at.Round(0), 0, nil
		s.load.Engine, s.load.Pages = r.Engine, pages
	} else {
		s.reason = ReasonConnect
		if fault := (*Error)(nil); errors.As(err, &fault) {
			s.reason = fault.Reason
		}
		if s.failed++; s.failed >= MissedLimit || s.whole.IsZero() {
			s.loadErr = fmt.Errorf("engine %s: %w", a.replica, err)
		}
	}
	if len(r.Figures) > 0 || err == nil {
		s.missed, s.at, s.engine, s.metrics = 0, at, r.Engine, a.metrics(r)
	} else if s.missed++; s.missed >= MissedLimit {
		s.metrics = nil
	}
	return s
}

func (e *engine) now() state {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.state
}

func (e *engine) put(s state) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.state = s
}

// forget resets the history, so that lower counters on the next page are not taken for a restart.
func (e *engine) forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.history = history{}
}

// scraped applies the result of one scrape. It returns the state before and after, and whether the engine has
// restarted.
func (e *engine) scraped(a address, at time.Time, p *Page, r *Reading, err error) (before, now state, restarted bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	before = e.state
	now = before.after(a, at, p, r, err)
	if now.missed == 0 {
		restarted, now.shared = e.history.add(p.Start, r)
	}
	e.state = now
	return before, now, restarted
}

// load returns the engine's load. looked is false if the engine has not been scraped yet or the last whole page is too
// old. Up to MissedLimit-1 failed scrapes in a row do not invalidate the load.
func (e *engine) load(interval time.Duration) (l Load, looked bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := &e.state
	switch {
	case !s.scraped:
		return unknown, false, ErrNotScraped
	case s.loadErr != nil:
		return unknown, true, s.loadErr
	case time.Since(s.whole) > (MissedLimit+1)*interval:
		return unknown, false, errOld
	}
	return s.load, true, nil
}

var unknown = Load{Waiting: math.NaN(), KVCacheUsage: math.NaN()}
