// Package limits protects the engine and the bill. A circuit breaker watches the engine's load and the workload's error
// ratio. Budgets limit requests and tokens over sliding windows.
//
// Each is a state machine. The caller passes the instant of every step. Nothing here reads a clock, locks or allocates.
package limits

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"replayd/internal/fault"
	"replayd/internal/number"
)

// A BlindMode is the behavior of a guard while the engine's load is unknown.
type BlindMode string

// The behaviors of a blind guard.
const (
	BlindPause BlindMode = "pause" // nothing is sent
	BlindGo    BlindMode = "go"    // limits whose figures are unknown are ignored
)

// A Guard holds the limits of a circuit breaker. A limit opens when its value is reached. It closes when the value was not
// reached for ResumeAfter. While a limit is open, requests that fall due or wait for a lane are dropped. Requests in flight
// continue. A limit of 0 is off. The zero value has no limits.
type Guard struct {
	Waiting      int     `koanf:"waiting"`        // requests in the engine's queue
	KVCacheUsage float64 `koanf:"kv_cache_usage"` // fraction of the engine's KV cache in use, 0 to 1

	// ErrorRatio is the fraction of failed requests among the workload's requests that finished in the last minute, 0 to 1.
	// Cancelled and aborted requests are not counted. The limit needs 5 finished requests to open. While it is open, one
	// finished request is enough for a new judgment; without any, the last judgment holds. While ErrorRatio alone is open,
	// the breaker is half open: it admits single trials, one in flight at a time and at most one per second, to detect a
	// recovery.
	ErrorRatio float64 `koanf:"error_ratio"`

	// OnMissingMetrics says, unless it is BlindGo, that Waiting and KVCacheUsage open while their figures are unknown.
	OnMissingMetrics BlindMode     `koanf:"on_missing_metrics"`
	ResumeAfter      time.Duration `koanf:"resume_after"` // 0: a limit closes at once
}

// Check returns the faults of a guard.
func (g *Guard) Check() (f fault.List) {
	f.AtLeast("waiting", g.Waiting, 0)
	f.Share("kv_cache_usage", g.KVCacheUsage)
	f.Share("error_ratio", g.ErrorRatio)
	f.OneOf("on_missing_metrics", string(g.OnMissingMetrics), string(BlindPause), string(BlindGo))
	f.NotNegative("resume_after", g.ResumeAfter)
	return f
}

// Scraped reports whether a limit needs the engine's metrics.
func (g *Guard) Scraped() bool { return len(g.OnFigures()) > 0 }

// Load is the load of a target's engines according to their own metrics. A figure that a metrics page lacks is NaN.
type Load struct {
	Waiting      float64 // requests in the queue of the engine with most
	KVCacheUsage float64 // of the fullest cache, 0 to 1

	Engine string // the engine's name; "": unknown, or several engines
	Pages  int    // complete scrapes of its metrics page, of several engines the fewest, counted up to SettledPages

	Unread bool // with an error: the page was not read, because this process did not run or lacked a resource
}

// Unknown returns a load without figures.
func Unknown() Load { return Load{Waiting: math.NaN(), KVCacheUsage: math.NaN()} }

// Add adds the load of another engine of the target. A figure that one of them lacks is missing.
func (l *Load) Add(of Load) {
	l.Waiting = max(l.Waiting, of.Waiting) // not the sum: of two that share the work, both count a request
	l.KVCacheUsage = max(l.KVCacheUsage, of.KVCacheUsage)
	l.Pages = min(l.Pages, of.Pages)
	if l.Engine != of.Engine {
		l.Engine = ""
	}
}

// SettledPages is the number of complete scrapes after which a missing figure counts as unsupported. Some engines show a
// figure only after the first request that changes it.
const SettledPages = 3

// ErrNotScraped is a reason why a guard is blind.
var ErrNotScraped = errors.New("the engine's metrics are not scraped")

// A Limit is a limit of a guard.
type Limit int

// Limits of a guard; the list is complete.
const (
	Waiting      Limit = iota // requests that wait in the engine's queue
	KVCacheUsage              // fraction of the engine's KV cache in use
	ErrorRatio                // fraction of failed requests of the workload
	Blind                     // the engine's figures are unknown
	Unsupported               // the engine's metrics page lacks a figure that a limit needs
	NumLimits
)

// table has the label value of each limit and its bound. A limit on a figure of the engine's page has that figure,
// too, and why a page without the figure leaves the guard blind.
var table = [NumLimits]struct {
	name   string
	bound  func(*Guard) float64
	figure func(Load) float64
	lacks  error
}{
	Waiting: {
		"waiting", func(g *Guard) float64 { return float64(g.Waiting) }, func(l Load) float64 { return l.Waiting },
		errors.New("the engine's page does not say how many requests wait"),
	},
	KVCacheUsage: {
		"kv_cache_usage", func(g *Guard) float64 { return g.KVCacheUsage }, func(l Load) float64 { return l.KVCacheUsage },
		errors.New("the engine's page does not say how full the KV cache is"),
	},
	ErrorRatio:  {name: "error_ratio", bound: func(g *Guard) float64 { return g.ErrorRatio }},
	Blind:       {name: "missing_metrics"},
	Unsupported: {name: "unsupported"},
}

// String returns the limit's label value. For a limit with a bound it is its key, too.
func (l Limit) String() string { return table[l].name }

// OnFigures returns the limits of a guard on figures of the engine's page.
func (g *Guard) OnFigures() (on []Limit) {
	for l, t := range table {
		if t.figure != nil && t.bound(g) > 0 {
			on = append(on, Limit(l))
		}
	}
	return on
}

// Figure returns the figure of the engine's page that a limit is on; NaN: the page lacks it, or the limit is on another figure.
func (l Load) Figure(of Limit) float64 {
	if table[of].figure == nil {
		return math.NaN()
	}
	return table[of].figure(l)
}

// A State is the state of a circuit breaker. Stricter states are larger.
type State int

// States of a breaker.
const (
	Closed   State = iota // all requests are admitted
	HalfOpen              // single trials are admitted
	Open                  // no request is admitted
)

// A Breaker applies a Guard. A nil Breaker admits every request.
type Breaker struct {
	Guard
	Reads  bool    // a limit needs the engine's metrics
	Health *Health // shared with the breaker that replaces this one on the same target
	open   [NumLimits]bool
	past   [NumLimits]time.Time // when the limit was last reached
	figure [NumLimits]float64   // its value then
	blind  error                // why the guard was blind then
	unread bool                 // this process was the cause
	lacks  string               // figures that the engine has never shown; "": none, or not known yet
	failed bool                 // whether the last judgment found the error ratio reached
	seen   bool                 // the figures were known at least once
	since  time.Time            // when the first of the open limits opened
}

// NewBreaker returns a Breaker for a guard, or nil if the guard has no limit.
func NewBreaker(g Guard) *Breaker {
	reads := g.Scraped()
	if !reads && g.ErrorRatio <= 0 {
		return nil
	}
	return &Breaker{Guard: g, Reads: reads, Health: newHealth()}
}

// Step judges every limit at an instant. err is the reason why the load is unknown. Step does not allocate.
func (g *Breaker) Step(now time.Time, l Load, err error) (changed bool) {
	if err != nil {
		unread := l.Unread
		l = Unknown()
		l.Unread = unread
	}
	var reached [NumLimits]bool
	var figure [NumLimits]float64
	for i := range table { // by index: this runs before every row
		t := &table[i]
		if t.figure == nil {
			continue
		}
		bound := t.bound(&g.Guard)
		figure[i] = t.figure(l)
		reached[i] = bound > 0 && figure[i] >= bound // false if the figure is NaN
		if err == nil && bound > 0 && math.IsNaN(figure[i]) {
			err = t.lacks
		}
	}
	unsupported := err != nil && l.Pages >= SettledPages
	if unsupported && g.lacks == "" {
		g.lacks = g.lacking(l)
	} else if err == nil {
		g.lacks = ""
	}
	ratio, finished := g.Health.Ratio(now)
	if finished >= healthLeast || finished > 0 && g.open[ErrorRatio] {
		g.failed = g.ErrorRatio > 0 && ratio >= g.ErrorRatio
	}
	held := err != nil && g.Reads && g.OnMissingMetrics != BlindGo
	blind := held && !unsupported
	reached[ErrorRatio], reached[Blind], reached[Unsupported] = g.failed, blind, held && unsupported
	figure[ErrorRatio] = ratio
	before := g.open
	for i, is := range reached {
		if is {
			g.past[i] = now
			if Limit(i) != ErrorRatio || finished > 0 {
				g.figure[i] = figure[i]
			}
		}
		g.open[i] = is || !g.past[i].IsZero() && now.Sub(g.past[i]) < g.ResumeAfter
	}
	if blind {
		g.blind, g.unread = err, l.Unread
	}
	if !blind && !g.seen { // the first figures end the initial blindness at once: it is no fault that could come back
		g.seen, g.past[Blind], g.open[Blind] = true, time.Time{}, false
	}
	if before == [NumLimits]bool{} && g.open != before {
		g.since = now
	}
	return g.open != before
}

// State returns the current state; Closed for a nil Breaker.
func (g *Breaker) State() State {
	switch {
	case g == nil || g.open == [NumLimits]bool{}:
		return Closed
	case g.open == [NumLimits]bool{ErrorRatio: true}:
		return HalfOpen
	}
	return Open
}

// Opened returns which limits are open.
func (g *Breaker) Opened() [NumLimits]bool { return g.open }

// Since returns when the breaker last left Closed.
func (g *Breaker) Since() time.Time { return g.since }

// SameAs reports whether State and Words of both are equal at every instant.
func (g *Breaker) SameAs(other *Breaker) bool {
	return g.open == other.open && g.past == other.past && g.figure == other.figure && g.lacks == other.lacks
}

// Lacks returns the names of the figures that a limit needs and that the engine has never shown; "": none, or not known
// yet.
func (g *Breaker) Lacks() string { return g.lacks }

// Unread reports whether the breaker is open only because this process did not read the engine's page. That is no fault
// of the engine.
func (g *Breaker) Unread() bool { return g.open == [NumLimits]bool{Blind: true} && g.unread }

// Refuses reports whether the breaker would not admit even a trial.
func (g *Breaker) Refuses(now time.Time) bool {
	s := g.State()
	return s == Open || s == HalfOpen && !g.Health.mayTry(now)
}

// Try reports whether a request is a trial: the breaker is half open and has room for one. The caller must report the
// end or the drop of a trial to Tried.
func (g *Breaker) Try(now time.Time) bool { return g.State() == HalfOpen && g.Health.try(now) }

// Tried ends the current trial, so that the next one is possible. A trial that was never sent does not count.
func (g *Breaker) Tried(sent bool) { g.Health.tried(sent) }

// LookEvery is the interval at which a breaker is judged while no request falls due.
const LookEvery = time.Second

// Wait returns how long the open limits stay open if they are not reached again.
func (g *Breaker) Wait(now time.Time) time.Duration {
	d := LookEvery
	for i, at := range g.past {
		if ago := now.Sub(at); g.open[i] && ago > 0 && ago < g.ResumeAfter {
			d = min(d, g.ResumeAfter-ago)
		}
	}
	return d
}

// Words returns a text that says why the guard is open; "" if it is not.
func (g *Breaker) Words(now time.Time) string {
	var why []string
	for i, t := range table {
		if !g.open[i] {
			continue
		}
		text := t.name
		switch Limit(i) {
		case Blind:
			text += fmt.Sprintf(": %v", g.blind)
		case Unsupported:
			text += ": " + g.lacks
		default:
			text += fmt.Sprintf(" %s ≥ %s", number.Places(g.figure[i], 3), number.Places(t.bound(&g.Guard), 3))
		}
		if ago := now.Sub(g.past[i]).Round(time.Second); ago > 0 {
			text += fmt.Sprintf(" until %v ago", ago)
		}
		why = append(why, text)
	}
	return strings.Join(why, ", ")
}

// lacking returns the names of the figures that the limits need and the engine does not show, and of the figures that it
// shows.
func (g *Breaker) lacking(l Load) string {
	var lacks, has []string
	for _, t := range table {
		switch {
		case t.figure == nil:
		case !math.IsNaN(t.figure(l)):
			has = append(has, t.name)
		case t.bound(&g.Guard) > 0:
			lacks = append(lacks, t.name)
		}
	}
	shows := "neither figure that a guard can use"
	if len(has) > 0 {
		shows = strings.Join(has, ", ")
	}
	engine := cmp.Or(l.Engine, "the engine")
	return fmt.Sprintf("%s has not shown %s on %d pages; it shows %s", engine, strings.Join(lacks, ", "), l.Pages, shows)
}
