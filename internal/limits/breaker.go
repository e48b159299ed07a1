// Package limits protects the engine and the bill. A circuit breaker watches the engine's load and the workload's error
// ratio. Budgets limit requests and tokens over sliding windows.
//
// Each is a state machine. The caller passes the instant of every step. Nothing here reads a clock, locks or allocates.
package limits

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

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
	Waiting      int     // requests in the engine's queue
	KVCacheUsage float64 // fraction of the engine's KV cache in use, 0 to 1

	// ErrorRatio is the fraction of failed requests among the workload's requests that finished in the last minute, 0 to 1.
	// Cancelled and aborted requests are not counted. The limit needs 5 finished requests to open. While it is open, one
	// finished request is enough for a new judgment; without any, the last judgment holds. While ErrorRatio alone is open,
	// the breaker is half open: it admits single trials, one in flight at a time and at most one per second, to detect a
	// recovery.
	ErrorRatio float64

	Blind       BlindMode     // unless it is BlindGo, Waiting and KVCacheUsage open while their figures are unknown
	ResumeAfter time.Duration // 0: a limit closes at once
}

// Scraped reports whether a limit needs the engine's metrics.
func (g *Guard) Scraped() bool { return g.Waiting > 0 || g.KVCacheUsage > 0 }

// Load is the engine's load according to its own metrics. A figure that the metrics page lacks is NaN.
type Load struct {
	Waiting      float64 // requests in its queue
	KVCacheUsage float64 // 0 to 1

	Engine string // the engine's name; "": unknown, or several engines
	Pages  int    // complete scrapes of its metrics page, counted up to settledPages
}

// settledPages is the number of complete scrapes after which a missing figure counts as unsupported. Some engines show a
// figure only after the first request that changes it.
const settledPages = 3

// Reasons why a guard is blind.
var (
	ErrNotScraped = errors.New("the engine's metrics are not scraped")
	errNoWaiting  = errors.New("the engine's page does not say how many requests wait")
	errNoUsage    = errors.New("the engine's page does not say how full the KV cache is")
)

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

// String returns the limit's label value.
func (l Limit) String() string {
	return [NumLimits]string{"waiting", "kv_cache_usage", "error_ratio", "missing_metrics", "unsupported"}[l]
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
	Health *Health // shared with the breaker that replaces this one on the same target
	open   [NumLimits]bool
	past   [NumLimits]time.Time // when the limit was last reached
	figure [NumLimits]float64   // its value then
	blind  error                // why the guard was blind then
	lacks  string               // figures that the engine has never shown; "": none, or not known yet
	failed bool                 // whether the last judgment found the error ratio reached
	seen   bool                 // the figures were known at least once
	since  time.Time            // when the first of the open limits opened
}

// NewBreaker returns a Breaker for a guard, or nil if the guard has no limit.
func NewBreaker(g Guard) *Breaker {
	if !g.Scraped() && g.ErrorRatio <= 0 {
		return nil
	}
	return &Breaker{Guard: g, Health: newHealth()}
}

// Step judges every limit at an instant. err is the reason why the load is unknown. Step does not allocate.
func (g *Breaker) Step(now time.Time, l Load, err error) (changed bool) {
	switch {
	case err != nil:
		l = Load{Waiting: math.NaN(), KVCacheUsage: math.NaN()}
	case g.Waiting > 0 && math.IsNaN(l.Waiting):
		err = errNoWaiting
	case g.KVCacheUsage > 0 && math.IsNaN(l.KVCacheUsage):
		err = errNoUsage
	}
	unsupported := err != nil && l.Pages >= settledPages
	if unsupported && g.lacks == "" {
		g.lacks = g.lacking(l)
	} else if err == nil {
		g.lacks = ""
	}
	ratio, finished := g.Health.Ratio(now)
	if finished >= healthLeast || finished > 0 && g.open[ErrorRatio] {
		g.failed = g.ErrorRatio > 0 && ratio >= g.ErrorRatio
	}
	held := g.Scraped() && err != nil && g.Blind != BlindGo
	blind := held && !unsupported
	reached := [NumLimits]bool{
		Waiting:      g.Waiting > 0 && l.Waiting >= float64(g.Waiting), // false if the figure is NaN
		KVCacheUsage: g.KVCacheUsage > 0 && l.KVCacheUsage >= g.KVCacheUsage,
		ErrorRatio:   g.failed,
		Blind:        blind,

		Unsupported: held && unsupported,
	}
	figure := [NumLimits]float64{Waiting: l.Waiting, KVCacheUsage: l.KVCacheUsage, ErrorRatio: ratio}
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
		g.blind = err
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

// Lacks returns the names of the figures that a limit needs and that the engine has never shown; "": none, or not known
// yet.
func (g *Breaker) Lacks() string { return g.lacks }

// Refuses reports whether the breaker would not admit even a trial.
func (g *Breaker) Refuses(now time.Time) bool {
	s := g.State()
	return s == Open || s == HalfOpen && !g.Health.mayTry(now)
}

// Admit reports whether a request is admitted, and whether the request is a trial, which it is while the breaker is half
// open. The caller must report the end or the drop of a trial to Tried.
func (g *Breaker) Admit(now time.Time) (ok, trial bool) {
	switch g.State() {
	case Closed:
		return true, false
	case HalfOpen:
		trial = g.Health.try(now)
		return trial, trial
	}
	return false, false
}

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
	for i, limit := range [NumLimits]float64{Waiting: float64(g.Waiting), KVCacheUsage: g.KVCacheUsage, ErrorRatio: g.ErrorRatio} {
		if !g.open[i] {
			continue
		}
		text := fmt.Sprintf("%s %s ≥ %s", Limit(i), number.Places(g.figure[i], 3), number.Places(limit, 3))
		switch Limit(i) {
		case Blind:
			text = fmt.Sprintf("%s: %v", Limit(i), g.blind)
		case Unsupported:
			text = fmt.Sprintf("%s: %s", Limit(i), g.lacks)
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
	for _, f := range []struct {
		name  Limit
		needs bool
		value float64
	}{{Waiting, g.Waiting > 0, l.Waiting}, {KVCacheUsage, g.KVCacheUsage > 0, l.KVCacheUsage}} {
		switch {
		case !math.IsNaN(f.value):
			has = append(has, f.name.String())
		case f.needs:
			lacks = append(lacks, f.name.String())
		}
	}
	shows := "neither figure that a guard can use"
	if len(has) > 0 {
		shows = strings.Join(has, ", ")
	}
	engine := l.Engine
	if engine == "" {
		engine = "the engine"
	}
	return fmt.Sprintf("%s has not shown %s on %d pages; it shows %s", engine, strings.Join(lacks, ", "), l.Pages, shows)
}
