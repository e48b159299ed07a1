package replay

import (
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"replayd/internal/dispatch"
	"replayd/internal/limits"
	"replayd/internal/metrics"
)

// A guard reads the engine's load for a runner's breaker, and shows what the breaker decides. The caller of a method
// holds the lock, unless the comment says otherwise.
type guard struct {
	breaker  *limits.Breaker // nil: there are no limits
	load     func() (limits.Load, error)
	readings atomic.Uint64 // readings of the engine's load

	count *metrics.Workload
	log   *journal
	open  [limits.NumLimits]bool // limits that are shown as open
}

// read reads the engine's load if a limit needs it. The caller must not hold the lock: the load takes its own lock.
func (g *guard) read() (seen dispatch.Reading) {
	if g.breaker == nil {
		return seen
	}
	seen.Order = g.readings.Add(1)
	switch {
	case !g.breaker.Reads:
	case g.load == nil:
		seen.Err = limits.ErrNotScraped
	default:
		seen.Load, seen.Err = g.load()
	}
	return seen
}

// show sets the gauges of limits that have opened or closed, and logs the change.
func (g *guard) show() {
	before, b := g.open, g.breaker
	if b == nil || !g.setGauges() {
		return
	}
	now, level := time.Now(), slog.LevelWarn
	text := "guard opened, requests are held back: " + b.Words(now)
	switch {
	case b.State() == limits.Closed:
		text = fmt.Sprintf("guard closed after %v, requests are sent again", now.Sub(b.Since()).Round(time.Millisecond))
		level = slog.LevelInfo
	case before != [limits.NumLimits]bool{}:
		text = "guard stays open: " + b.Words(now)
	}
	g.log.note(level, text, "")
}

// setGauges sets the gauges of limits that have opened or closed. It reports whether there are any.
func (g *guard) setGauges() (changed bool) {
	before := g.open
	g.open = g.breaker.Opened()
	for i, open := range g.open {
		if open != before[i] {
			g.count.Guard(limits.Limit(i), open)
		}
	}
	return g.open != before
}

// lacks logs once that a limit needs a figure that the engine does not show.
func (g *guard) lacks() {
	text := "guard cannot judge a limit: " + g.breaker.Lacks() +
		". Nothing is sent: remove the limit, or set on_missing_metrics: go"
	if g.breaker.OnMissingMetrics == limits.BlindGo {
		text = "guard ignores a limit (on_missing_metrics: go): " + g.breaker.Lacks()
	}
	g.log.note(slog.LevelError, text, "")
}

// reset resets the gauges after a runner has stopped.
func (g *guard) reset() {
	for l := range limits.NumLimits {
		g.count.Guard(l, false)
	}
}

// follow takes over the state from the guard of the same target before a reload: the target's health and, if the limits
// are the same, the open limits. The spending is shared by both.
func (g *guard) follow(before *guard) {
	old, mine := before.breaker, g.breaker
	if old == nil || mine == nil {
		return
	}
	mine.Health = old.Health
	if mine.Guard == old.Guard {
		*mine = *old
		g.setGauges()
	}
}
