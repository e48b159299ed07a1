package scrape

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	dto "github.com/prometheus/client_model/go"

	"replayd/internal/bounded"
	"replayd/internal/limits"
	"replayd/internal/secret"
)

// MissedLimit is the number of consecutive failed scrapes after which an engine's figures are neither exported nor
// used.
const MissedLimit = 3

type address struct{ target, replica string }

// An engine holds everything known about one address.
type engine struct {
	users int       // users, left and rows are guarded by Collector.mu
	left  time.Time // when the last user released the engine
	rows  []Row     // the user's rows, from metrics.map
	role  *Role

	// Counted by replayd itself.
	restarts atomic.Int64
	failures [len(reasons)]atomic.Int64
	bad      atomic.Int64 // samples that were dropped

	overflow *bounded.Overflow

	mu      sync.Mutex
	state   state
	history history
	places  places
}

// A state is the result of the latest scrapes. It is replaced as a whole.
type state struct {
	scraped  bool          // scraped at least once
	missed   int           // scrapes in a row without figures
	at       time.Time     // start of the latest scrape with figures; zero: none yet
	duration time.Duration // of the latest scrape
	samples  int           // of the latest scrape
	reason   Reason        // of the latest error
	err      error         // nil: the latest scrape returned a whole page
	engine   string        // named by the latest page with figures
	series   []*Series     // on /metrics
	shared   bool          // several processes answer at this address
	unread   int           // scrapes in a row that were not made, because this process lacked a resource
	twice    int           // duplicate samples on the first page with duplicates; 0: none so far
	bad      int           // samples of the latest page that were dropped
	first    secret.Text   // why the first was, of the latest page that had one; "": none so far

	// For the guard, which uses whole pages only.
	load    limits.Load // from the latest whole page
	whole   time.Time   // wall-clock time of that page: timers and Go's monotonic clock stop while the machine is suspended
	failed  int         // failed scrapes in a row since that page
	loadErr error       // why load is invalid; nil: it is valid
	ranks   guarded     // of its figures
}

// Errors of a load that is not known.
var (
	ErrNotScraped = errors.New("not scraped yet")
	errOld        = errors.New("its values are stale: this process was not running")
	errUnread     = errors.New("its page is not read: this process lacks a resource")
)

// after returns the state that follows s after one scrape, with the series of s if there are no new ones.
func (s state) after(noun string, a address, at time.Time, p *Page, r *Reading, err error) state {
	s.scraped, s.duration, s.err, s.reason, s.samples, s.unread = true, time.Since(at), err, "", 0, 0
	s.bad = 0
	if p != nil {
		s.samples = p.Total
		s.twice = cmp.Or(s.twice, p.Twice)
		s.bad, s.first = p.Bad, cmp.Or(p.First(), s.first)
	}
	if err == nil {
		pages := 1
		if r.Engine == s.load.Engine {
			pages = min(s.load.Pages+1, limits.SettledPages)
		}
		if p.Bad > 0 { // a missing figure may be there
			pages = min(pages, limits.SettledPages-1)
		}
		s.ranks = r.ranks(s.ranks)
		s.load, s.whole, s.failed, s.loadErr = r.load(), at.Round(0), 0, nil
		s.load.Engine, s.load.Pages = r.Engine, pages
	} else {
		s.reason = ReasonConnect
		if fault := (*Error)(nil); errors.As(err, &fault) {
			s.reason = fault.Reason
		}
		if s.failed++; s.failed >= MissedLimit || s.whole.IsZero() {
			s.loadErr = fmt.Errorf("%s %s: %w", noun, a.replica, err)
		}
	}
	if len(r.Figures) > 0 || err == nil {
		s.missed, s.at, s.engine = 0, at, r.Engine
	} else if s.missed++; s.missed >= MissedLimit {
		s.series = nil
	}
	return s
}

// up reports whether the latest scrape gave a whole page.
func (s *state) up() bool { return s.scraped && s.err == nil }

func (e *engine) now() state {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.state
}

// scraped applies the result of one scrape. It returns the state before and after, and whether the engine has
// restarted.
func (e *engine) scraped(a address, at time.Time, p *Page, r *Reading, err error) (before, now state, restarted bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	before = e.state
	now = before.after(e.role.noun, a, at, p, r, err)
	if now.missed == 0 { // figures of a partial page are exported too
		now.series = e.role.series(a, e.places.show(r, at, e.overflow))
		restarted, now.shared = e.history.add(p.Start, r)
	}
	e.state = now
	return before, now, restarted
}

// generated returns the output tokens since the first page, and whether the pages of one engine count them.
func (e *engine) generated() (tokens float64, known bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.history.generated, e.history.tokens != nil && !e.history.shared
}

// unread notes a scrape that was not made, because this process lacked a resource. Figures become stale, and whether
// the engine is up is not known anew. It reports whether the scrape before was made.
func (e *engine) unread() (first bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state.unread++; e.state.unread >= MissedLimit {
		e.state.series = nil
	}
	return e.state.unread == 1
}

// load returns the engine's load. looked is false if the engine has not been scraped yet or the last whole page is too
// old. Up to MissedLimit-1 failed scrapes in a row do not invalidate the load.
func (e *engine) load(interval time.Duration) (l limits.Load, looked bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := &e.state
	old := time.Since(s.whole) > (MissedLimit+1)*interval
	unread := limits.Unknown()
	unread.Unread = true // this process did not read the page
	switch {
	case s.unread > 0 && (!s.scraped || old):
		return unread, false, errUnread
	case !s.scraped:
		return limits.Unknown(), false, ErrNotScraped
	case s.loadErr != nil:
		return limits.Unknown(), true, s.loadErr
	case old:
		return unread, false, errOld
	}
	return s.load, true, nil
}

// series returns the series of a reading. The first one names what answers.
func (role *Role) series(a address, r *Reading) []*Series {
	at, target := Pair("address", a.replica), Pair("target", a.target)
	names := []*dto.LabelPair{Pair(role.noun, r.Engine), Pair("model_name", string(r.Model)), at, target}
	slices.SortFunc(names, func(a, b *dto.LabelPair) int { return strings.Compare(a.GetName(), b.GetName()) })
	list := []*Series{{Family: role.info, Labels: names, Value: 1}}
	for _, f := range r.Figures {
		labels := []*dto.LabelPair{at, Pair("rank", string(f.Rank)), target}
		list = append(list, &Series{named(role.quantities, f.Quantity.Name).Family, labels, false, f.Value, f.Buckets})
	}
	return list
}
