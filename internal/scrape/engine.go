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

// An engine is all that is known of one address.
type engine struct {
	users int       // guarded by the Collector's lock, as left and rows are
	left  time.Time // when the last of them went
	rows  []Row     // of the user's that it is read by

	// What replayd itself counts.
	restarts atomic.Int64
	failures [len(reasons)]atomic.Int64

	mu      sync.Mutex
	state   state
	history history
}

// A state is what the latest scrapes gave. It is put in place whole.
type state struct {
	scraped  bool                // at least once
	missed   int                 // scrapes in a row without figures
	at       time.Time           // start of the latest one that gave figures; zero: none has
	duration time.Duration       // of the latest one
	samples  int                 // of the latest one
	reason   Reason              // of the latest error
	err      error               // nil: the latest scrape gave a whole page
	engine   string              // by the latest page that gave figures
	metrics  []prometheus.Metric // what /metrics shows of it
	shared   bool                // several processes answer at this address
	twice    int                 // samples of the first page that had a series twice; 0: none had

	// For the guard, which must not take half a page for a whole one.
	load    Load      // by the latest whole page
	whole   time.Time // when that was, by the wall: timers and Go's clock stand still in a suspension
	failed  int       // scrapes in a row since then
	loadErr error     // why load cannot be believed; nil: it can
}

// Why a load is not known.
var (
	ErrNotScraped = errors.New("not scraped yet")
	errOld        = errors.New("its values are stale: this process was not running")
)

// after is the state that one scrape makes of s. Part of a page is something to show.
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

// forget lets counters of the next page be any.
func (e *engine) forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.history = history{}
}

// scraped takes in what one scrape gave, and tells what was known before.
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

// load is what the engine says of itself. False: it was not scraped yet, or the last scrape is too old. One or two scrapes that failed are no reason to think
// it unseen: what was read before them is some intervals older.
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
