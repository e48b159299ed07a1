// Package limits protects the engine and the bill: a circuit breaker on the engine's load and on the workload's error ratio, and
// budgets over sliding windows.
//
// Each is a state machine that takes the instant of every step. It reads no clock, has no lock and does not allocate.
package limits

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"replayd/internal/number"
)

// A BlindMode is the behaviour of a guard while the engine's load is not known.
type BlindMode string

// Treatments of blindness.
const (
	BlindPause BlindMode = "pause" // nothing is sent
	BlindGo    BlindMode = "go"    // the limits that cannot be judged are ignored
)

// A Guard has the limits of a circuit breaker. A limit opens when its value is reached, and closes when it was not reached for
// ResumeAfter. While one is open, requests that come due or wait for a lane are dropped; requests in flight go on. A limit of 0 is
// none, and the zero value has no limit.
type Guard struct {
	Waiting      int     // requests in the engine's queue
	KVCacheUsage float64 // share of the engine's KV cache that is in use, 0 to 1

	// ErrorRatio is the share of the workload's own requests that failed, of those that finished in the last minute, 0 to 1.
	// It opens with 5 finished requests at least; cancelled and aborted ones are not counted. While it is open, one finished
	// request is enough to judge by, and without any the last judgement stays. While it alone is open the breaker is half open:
	// single trials are sent, one in flight at a time and at most one a second, so that a recovery can be seen.
	ErrorRatio float64

	Blind       BlindMode     // where it is not BlindGo, Waiting and KVCacheUsage open while their figures are not known
	ResumeAfter time.Duration // 0: a limit closes at once
}

// Scraped says whether a limit needs the engine's figures.
func (g *Guard) Scraped() bool { return g.Waiting > 0 || g.KVCacheUsage > 0 }

// Load is the engine's load by its own metrics. A figure that its page lacks is NaN.
type Load struct {
	Waiting      float64 // requests in its queue
	KVCacheUsage float64 // 0 to 1

	Engine string // its name; "": not known, or several
	Pages  int    // whole pages that were read of it, counted up to settledPages
}

// settledPages is after how many whole pages a figure that was on none of them counts as unsupported: some engines show a
// figure only once a request has moved it, so it may still appear.
const settledPages = 3

// Why a guard is blind.
var (
	ErrNotScraped = errors.New("the engine's metrics are not scraped")
	errNoWaiting  = errors.New("the engine's page does not say how many requests wait")
	errNoUsage    = errors.New("the engine's page does not say how full the KV cache is")
)

// A Limit is one of a guard's.
type Limit int

// Limits of a guard, the whole list.
const (
	Waiting      Limit = iota // requests that wait in the engine's queue
	KVCacheUsage              // share of the engine's KV cache that is in use
	ErrorRatio                // share of the workload's own requests that failed
	Blind                     // the engine's figures are not known
	Unsupported               // the engine's page does not have a figure that a limit needs
	NumLimits
)

// String gives the name of a limit as the label of its series has it.
func (l Limit) String() string {
	return [NumLimits]string{"waiting", "kv_cache_usage", "error_ratio", "missing_metrics", "unsupported"}[l]
}

// A State is the state of a circuit breaker, the strictest last.
type State int

// States of a breaker.
const (
	Closed   State = iota // nothing is held back
	HalfOpen              // single trials go through
	Open                  // everything is held back
)

// A Breaker is a Guard at work; nil holds nothing back.
type Breaker struct {
	Guard
	Health *Health // shared with the breaker that takes over on the same target
	open   [NumLimits]bool
	past   [NumLimits]time.Time // when the limit was last reached
	figure [NumLimits]float64   // its value then
	blind  error                // why it was blind then
	lacks  string               // which figures the engine has never shown; "": it shows those that are needed, or is not known yet
	failed bool                 // the error ratio was reached when it was last judged
	seen   bool                 // the figures were known once
	since  time.Time            // when the first limit opened of those that are open
}

// NewBreaker makes a guard's breaker; nil where the guard has no limit.
func NewBreaker(g Guard) *Breaker {
	if !g.Scraped() && g.ErrorRatio <= 0 {
		return nil
	}
	return &Breaker{Guard: g, Health: newHealth()}
}

// Step judges every limit at an instant. err says why the load is not known. It does not allocate.
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
		Waiting:      g.Waiting > 0 && l.Waiting >= float64(g.Waiting), // false of NaN
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
	if !blind && !g.seen { // the first figures end the blindness of the start: it was no trouble that could come back
		g.seen, g.past[Blind], g.open[Blind] = true, time.Time{}, false
	}
	if before == [NumLimits]bool{} && g.open != before {
		g.since = now
	}
	return g.open != before
}

// State is the present state; Closed for a nil Breaker.
func (g *Breaker) State() State {
	switch {
	case g == nil || g.open == [NumLimits]bool{}:
		return Closed
	case g.open == [NumLimits]bool{ErrorRatio: true}:
		return HalfOpen
	}
	return Open
}

// Opened reports the open limits.
func (g *Breaker) Opened() [NumLimits]bool { return g.open }

// Since is when the breaker last left Closed.
func (g *Breaker) Since() time.Time { return g.since }

// Lacks names the figures that a limit needs and the engine has never shown; "": none, or not known yet.
func (g *Breaker) Lacks() string { return g.lacks }

// Refuses says whether not even a trial would be admitted.
func (g *Breaker) Refuses(now time.Time) bool {
	s := g.State()
	return s == Open || s == HalfOpen && !g.Health.mayTry(now)
}

// Admit admits a request; as a trial if the breaker is half open. The end or the drop of a trial must be reported to Tried.
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

// Tried ends the trial, so that another can follow. A trial that was never sent does not count.
func (g *Breaker) Tried(sent bool) { g.Health.tried(sent) }

// LookEvery is the interval of judging a breaker without requests.
const LookEvery = time.Second

// Wait is how long the open limits stay as they are unless one is reached.
func (g *Breaker) Wait(now time.Time) time.Duration {
	d := LookEvery
	for i, at := range g.past {
		if ago := now.Sub(at); g.open[i] && ago > 0 && ago < g.ResumeAfter {
			d = min(d, g.ResumeAfter-ago)
		}
	}
	return d
}

// Words tell why the guard is open, "" when it is not.
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

// lacking says which of the figures that the limits need the engine does not show, and which of them it does.
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
