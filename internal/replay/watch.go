package replay

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"replayd/internal/dispatch"
	"replayd/internal/limits"
	"replayd/internal/measure"
)

// told is the state of log lines that are written once for each condition.
type told struct {
	open      [limits.NumLimits]bool // open limits of the guard
	large     bool                   // a request is larger than the whole budget
	invalid   int                    // messages that could not be built since the last log line about them
	invalidAt time.Time              // time of that log line
}

// look reads the engine's load if a limit needs it. The caller must not hold the lock: Load takes its own lock.
func (r *Runner) look() dispatch.Reading {
	g := r.breaker
	if g == nil {
		return dispatch.Reading{}
	}
	seen := dispatch.Reading{Order: r.looks.Add(1)}
	switch {
	case !g.Scraped():
	case r.w.Load == nil:
		seen.Err = limits.ErrNotScraped
	default:
		seen.Load, seen.Err = r.w.Load()
	}
	return seen
}

// showGuard sets the gauges of limits that have opened or closed, and logs the change. The caller holds the lock.
func (r *Runner) showGuard() {
	g := r.breaker
	if g == nil {
		return
	}
	before := r.told.open
	r.told.open = g.Opened()
	if r.told.open == before {
		return
	}
	for i, open := range r.told.open {
		if open != before[i] {
			r.count.Guard(guardLimit(limits.Limit(i)), open)
		}
	}
	now, level := time.Now(), slog.LevelWarn
	text := "guard opened, requests are held back: " + g.Words(now)
	switch {
	case g.State() == limits.Closed:
		text = fmt.Sprintf("guard closed after %v, requests are sent again", now.Sub(g.Since()).Round(time.Millisecond))
		level = slog.LevelInfo
	case before != [limits.NumLimits]bool{}:
		text = "guard stays open: " + g.Words(now)
	}
	r.tellGuard(text, level)
}

// tellGuard logs a change of the guard. The caller holds the lock.
func (r *Runner) tellGuard(text string, level slog.Level) {
	r.say(func() {
		r.w.Log.Log(context.Background(), level, text, "workload", r.w.Name)
		if r.w.Guarded != nil {
			r.w.Guarded(level, fmt.Sprintf("%s (%s)", text, r.w.Name))
		}
	})
}

// tellLacks logs once that a limit needs a figure that the engine does not show. The caller holds the lock.
func (r *Runner) tellLacks() {
	g := r.breaker
	text := "guard cannot judge a limit: " + g.Lacks() + ". Nothing is sent: remove the limit, or set on_missing_metrics: go"
	if g.Blind == limits.BlindGo {
		text = "guard ignores a limit (on_missing_metrics: go): " + g.Lacks()
	}
	r.tellGuard(text, slog.LevelError)
}

// tellLarge logs the first request that alone exceeds the budget. The caller holds the lock.
func (r *Runner) tellLarge(row *dispatch.Row) {
	if r.told.large {
		return
	}
	r.told.large = true
	id, input, output := row.ID, row.Due.InputTokens, row.Due.OutputTokens
	r.say(func() {
		r.w.Log.Warn("a single request exceeds the whole budget: such requests are always dropped",
			"workload", r.w.Name, "id", id, "input_tokens", input, "output_tokens", output)
	})
}

// invalidEvery is the minimum time between two log lines about messages that could not be built.
const invalidEvery = time.Minute

// tellInvalid logs that a request was dropped because its message could not be built. The caller holds the lock.
func (r *Runner) tellInvalid(row *dispatch.Row) {
	told := &r.told
	told.invalid++
	now := time.Now()
	if !told.invalidAt.IsZero() && now.Sub(told.invalidAt) < invalidEvery {
		return
	}
	id, err, n := row.ID, row.Message.Err, told.invalid
	told.invalidAt, told.invalid = now, 0
	r.say(func() {
		r.w.Log.Error("a request's message cannot be built: dropped as invalid", "workload", r.w.Name, "id", id, "err", err, "dropped", n)
	})
}

// tellBudget logs the first request that the budget refuses, and the end of the refusals. The caller holds the lock.
func (r *Runner) tellBudget(s limits.Spell, full limits.Bound) {
	closed := r.closed // of this stage: the next stage may log the line
	r.say(func() {
		if full != "" {
			text := "the budget is exhausted: requests beyond it are dropped"
			if closed {
				text = "the budget is exhausted: requests wait until there is room"
			}
			r.w.Log.Warn(text, "workload", r.w.Name, "budget", full, "limit", r.w.Budget.Most(full))
			return
		}
		if closed {
			r.w.Log.Info("the budget suffices again: it held nothing back for a minute",
				"workload", r.w.Name, "spent_for", s.Last.Sub(s.From).Round(time.Millisecond))
			return
		}
		r.w.Log.Info("the budget suffices again: it dropped nothing for a minute",
			"workload", r.w.Name, "spent_for", s.Last.Sub(s.From).Round(time.Millisecond), "dropped", s.Refused)
	})
}

// tellCrowded logs the first drop at max_waiting, and the end of such drops. The caller holds the lock.
func (r *Runner) tellCrowded(begins bool, s limits.Spell) {
	r.say(func() {
		if begins {
			r.w.Log.Warn("max_waiting is reached: requests that would have to wait are dropped as overload", "workload", r.w.Name)
			return
		}
		r.w.Log.Info("waiting requests fit within max_waiting again: none was dropped for a minute",
			"workload", r.w.Name, "full_for", s.Last.Sub(s.From).Round(time.Millisecond), "dropped", s.Refused)
	})
}

// watch judges the guard while no row falls due.
func (r *Runner) watch(ctx context.Context) {
	for {
		r.tell(dispatch.Event{Kind: dispatch.Look})
		r.mu.Lock()
		wait := r.breaker.Wait(time.Now())
		r.mu.Unlock()
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// guardLimit returns the label value of a limit.
func guardLimit(l limits.Limit) measure.GuardLimit { return measure.GuardLimit(l.String()) }

// unguard resets the guard's gauges after a runner has stopped. The caller holds the lock.
func (r *Runner) unguard() {
	for l := range limits.NumLimits {
		r.count.Guard(guardLimit(l), false)
	}
}

// follow takes over guard state from the runner before a reload: the health of the same target and, if the limits are the
// same, the open limits. The spending is shared by both.
func (r *Runner) follow(before *Runner) {
	before.mu.Lock()
	defer before.mu.Unlock()
	old, mine := before.breaker, r.breaker
	if old == nil || mine == nil || before.w.Target != r.w.Target {
		return
	}
	mine.Health = old.Health
	if mine.Guard == old.Guard {
		*mine = *old
		r.told = told{open: mine.Opened()}
		for i, open := range r.told.open {
			r.count.Guard(guardLimit(limits.Limit(i)), open)
		}
	}
}
