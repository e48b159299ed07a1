package replay

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"replayd/internal/measure"
	"replayd/internal/number"
)

// A BlindMode says what a guard does while the figures that its limits need are not known.
type BlindMode string

// Treatments of blindness.
const (
	BlindPause BlindMode = "pause" // nothing is sent
	BlindGo    BlindMode = "go"    // the limits that cannot be judged are ignored
)

// A Guard holds requests back before they harm the engine: a limit is open from its very value on, and until it was not
// reached for ResumeAfter. While one is open, what falls due or waits for a lane is dropped; what is in flight goes on.
// A limit of 0 is none, the zero value holds nothing back.
type Guard struct {
	Waiting      int     // requests in the engine's queue
	KVCacheUsage float64 // share of the engine's KV cache that is in use, 0 to 1

	// ErrorRatio is the share of the workload's own requests that failed, of those that finished in the last minute, 0 to 1.
	// It opens from 5 finished ones on; cancelled and aborted ones are not counted. While it is open, one finished request is
	// enough to judge by, and what was judged last holds where none has finished. While it alone is open, single trials go
	// through, one in flight at a time and one a second at most: nothing would recover while nothing is sent.
	ErrorRatio float64

	Blind       BlindMode     // where it is not BlindGo, Waiting and KVCacheUsage open while their figures are not known
	ResumeAfter time.Duration // 0: a limit closes at once
}

// scraped says whether a limit needs the engine's figures.
func (g *Guard) scraped() bool { return g.Waiting > 0 || g.KVCacheUsage > 0 }

// Load is what the engine says of itself. A figure that its page does not have is NaN.
type Load struct {
	Waiting      float64 // requests in its queue
	KVCacheUsage float64 // 0 to 1

	Engine string // its name; "": not known, or several
	Pages  int    // whole pages that were read of it, counted up to settledPages
}

// settledPages is after how many whole pages a figure that was on none of them counts as unsupported: some engines show a
// figure only once a request has moved it, so it may still appear.
const settledPages = 3

// Why a guard is blind when the engine's page was read.
var (
	errNotScraped = errors.New("the engine's figures are not scraped")
	errNoWaiting  = errors.New("the engine's page does not say how many requests wait")
	errNoUsage    = errors.New("the engine's page does not say how full the KV cache is")
)

// The limits, as places in arrays.
const (
	limitWaiting = iota
	limitUsage
	limitErrors
	limitBlind
	limitUnsupported
	numLimits
)

var limitNames = [numLimits]measure.GuardLimit{
	measure.GuardWaiting, measure.GuardKVCacheUsage, measure.GuardErrorRatio, measure.GuardBlind, measure.GuardUnsupported,
}

// A hold says what a guard holds back, in rising order.
type hold int

const (
	nothing   hold = iota
	allButOne      // single trials go through
	all
)

// A guard is a Guard at work: a plain state machine that takes the instant of each step; nil holds nothing back. The caller
// holds the runner's lock.
type guard struct {
	Guard
	health *health
	open   [numLimits]bool
	past   [numLimits]time.Time // when the limit was last reached
	figure [numLimits]float64   // what was found then
	blind  error                // why it was blind then
	lacks  string               // which figures the engine has never shown; "": it shows those that are needed, or is not known yet
	failed bool                 // the error ratio was reached when it was last judged
	seen   bool                 // the figures were known once
	since  time.Time            // when the first limit opened of those that are open
}

func newGuard(g Guard) *guard {
	if !g.scraped() && g.ErrorRatio <= 0 {
		return nil
	}
	return &guard{Guard: g, health: newHealth()}
}

// step judges every limit by what is known at an instant; err says why nothing is known of the load. It allocates nothing.
func (g *guard) step(now time.Time, l Load, err error) (changed bool) {
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
	ratio, finished := g.health.ratio(now)
	if finished >= healthLeast || finished > 0 && g.open[limitErrors] {
		g.failed = g.ErrorRatio > 0 && ratio >= g.ErrorRatio
	}
	held := g.scraped() && err != nil && g.Blind != BlindGo
	blind := held && !unsupported
	reached := [numLimits]bool{
		limitWaiting: g.Waiting > 0 && l.Waiting >= float64(g.Waiting), // false of NaN
		limitUsage:   g.KVCacheUsage > 0 && l.KVCacheUsage >= g.KVCacheUsage,
		limitErrors:  g.failed,
		limitBlind:   blind,

		limitUnsupported: held && unsupported,
	}
	figure := [numLimits]float64{limitWaiting: l.Waiting, limitUsage: l.KVCacheUsage, limitErrors: ratio}
	before := g.open
	for i, is := range reached {
		if is {
			g.past[i] = now
			if i != limitErrors || finished > 0 {
				g.figure[i] = figure[i]
			}
		}
		g.open[i] = is || !g.past[i].IsZero() && now.Sub(g.past[i]) < g.ResumeAfter
	}
	if blind {
		g.blind = err
	}
	if !blind && !g.seen { // the first figures end the blindness of the start: it was no trouble that could come back
		g.seen, g.past[limitBlind], g.open[limitBlind] = true, time.Time{}, false
	}
	if before == [numLimits]bool{} && g.open != before {
		g.since = now
	}
	return g.open != before
}

// holds says what is held back now.
func (g *guard) holds() hold {
	switch {
	case g == nil || g.open == [numLimits]bool{}:
		return nothing
	case g.open == [numLimits]bool{limitErrors: true}:
		return allButOne
	}
	return all
}

// refuses says whether nothing, not even a trial, would be let through.
func (g *guard) refuses(now time.Time) bool {
	h := g.holds()
	return h == all || h == allButOne && !g.health.mayTry(now)
}

// admit lets an item through, maybe as a trial.
func (g *guard) admit(it *item, now time.Time) bool {
	if g.refuses(now) {
		return false
	}
	if g.holds() == allButOne {
		it.trial = g.health.try(now)
		return it.trial
	}
	return true
}

// over takes note that an item has ended or was dropped: there may be another trial.
func (g *guard) over(it *item, sent bool) {
	if it.trial {
		g.health.tried(sent)
		it.trial = false
	}
}

// wait is how long nothing but a reached limit can change what is open.
func (g *guard) wait(now time.Time) time.Duration {
	d := lookEvery
	for i, at := range g.past {
		if ago := now.Sub(at); g.open[i] && ago > 0 && ago < g.ResumeAfter {
			d = min(d, g.ResumeAfter-ago)
		}
	}
	return d
}

// words tell why the guard is open, "" when it is not.
func (g *guard) words(now time.Time) string {
	var why []string
	for i, limit := range [numLimits]float64{limitWaiting: float64(g.Waiting), limitUsage: g.KVCacheUsage, limitErrors: g.ErrorRatio} {
		if !g.open[i] {
			continue
		}
		text := fmt.Sprintf("%s %s ≥ %s", limitNames[i], number.Places(g.figure[i], 3), number.Places(limit, 3))
		switch i {
		case limitBlind:
			text = fmt.Sprintf("%s: %v", limitNames[i], g.blind)
		case limitUnsupported:
			text = fmt.Sprintf("%s: %s", limitNames[i], g.lacks)
		}
		if ago := now.Sub(g.past[i]).Round(time.Second); ago > 0 {
			text += fmt.Sprintf(" until %v ago", ago)
		}
		why = append(why, text)
	}
	return strings.Join(why, ", ")
}

// lacking says which of the figures that the limits need the engine does not show, and which of them it does.
func (g *guard) lacking(l Load) string {
	var lacks, has []string
	for _, f := range []struct {
		name  measure.GuardLimit
		needs bool
		value float64
	}{{measure.GuardWaiting, g.Waiting > 0, l.Waiting}, {measure.GuardKVCacheUsage, g.KVCacheUsage > 0, l.KVCacheUsage}} {
		switch {
		case !math.IsNaN(f.value):
			has = append(has, string(f.name))
		case f.needs:
			lacks = append(lacks, string(f.name))
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
