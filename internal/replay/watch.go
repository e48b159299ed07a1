package replay

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"replayd/internal/limits"
	"replayd/internal/measure"
)

// A reading is what the engine's load was said to be.
type reading struct {
	order uint64 // of the questions
	load  limits.Load
	err   error
}

// look asks for the engine's load, where a limit needs it. The lock must not be held: Load takes one of its own.
func (r *Runner) look() reading {
	g := r.queue.guard // the pointer never changes
	if g == nil {
		return reading{}
	}
	seen := reading{order: r.looks.Add(1)}
	switch {
	case !g.Scraped():
	case r.w.Load == nil:
		seen.err = limits.ErrNotScraped
	default:
		seen.load, seen.err = r.w.Load()
	}
	return seen
}

// judge steps the guard, with the lock held, and tells of what it changed. Everything that hands an item to a lane judges
// first, so that no request is sent after the limit was seen.
func (r *Runner) judge(now time.Time, seen reading) {
	g := r.queue.guard
	if g == nil || r.stopped || r.done || seen.order < r.judged { // what a goroutine saw that then had to wait is no news
		return
	}
	r.judged = seen.order
	before := g.Opened()
	changed := r.queue.judge(now, seen.load, seen.err)
	if g.Lacks() != r.lacks {
		r.lacks = g.Lacks()
		r.tellLacks(g)
	}
	if !changed {
		return
	}
	for i, open := range g.Opened() {
		if open != before[i] {
			r.count.Guard(guardLimit(limits.Limit(i)), open)
		}
	}
	text := "guard opened: " + g.Words(now)
	switch {
	case g.State() == limits.Closed:
		text = fmt.Sprintf("guard closed after %v", now.Sub(g.Since()).Round(time.Millisecond))
	case before != [limits.NumLimits]bool{}:
		text = "guard stays open: " + g.Words(now)
	}
	level := slog.LevelInfo
	if g.State() != limits.Closed {
		level = slog.LevelWarn
	}
	r.tellGuard(text, level)
	r.settle() // what was dropped made room
}

// tellGuard says what became of the guard. The lock is held.
func (r *Runner) tellGuard(text string, level slog.Level) {
	r.say(func() {
		r.w.Log.Log(context.Background(), level, text, "workload", r.w.Name)
		if r.w.Guarded != nil {
			r.w.Guarded(level, fmt.Sprintf("%s (%s)", text, r.w.Name))
		}
	})
}

// tellLacks logs once that a limit needs a figure that the engine does not show. The lock is held.
func (r *Runner) tellLacks(g *limits.Breaker) {
	if g.Lacks() == "" {
		return
	}
	text := "guard cannot judge a limit: " + g.Lacks() + ". Nothing is sent: remove the limit, or set when_blind: go"
	if g.Blind == limits.BlindGo {
		text = "guard ignores a limit (when_blind: go): " + g.Lacks()
	}
	r.tellGuard(text, slog.LevelError)
}

// tellLarge says once that a request will never be sent. The lock is held.
func (r *Runner) tellLarge(it *item) {
	if r.large {
		return
	}
	r.large = true
	id, input, output := it.id, it.due.InputTokens, it.due.OutputTokens
	r.say(func() {
		r.w.Log.Warn("a request alone is larger than the whole budget: such ones are always dropped",
			"workload", r.w.Name, "id", id, "input_tokens", input, "output_tokens", output)
	})
}

// invalidEvery is the least time between two log lines about messages that could not be built.
const invalidEvery = time.Minute

// tellInvalid logs that a request was dropped because its message could not be built. The lock is held.
func (r *Runner) tellInvalid(it *item) {
	r.invalid.since++
	now := time.Now()
	if !r.invalid.told.IsZero() && now.Sub(r.invalid.told) < invalidEvery {
		return
	}
	id, err, n := it.id, it.err, r.invalid.since
	r.invalid.told, r.invalid.since = now, 0
	r.say(func() {
		r.w.Log.Error("a request's message cannot be built: dropped as invalid", "workload", r.w.Name, "id", id, "err", err, "dropped", n)
	})
}

// tellBudget says that the budget begins to refuse requests, or that this is over. The lock is held.
func (r *Runner) tellBudget(s limits.Spell, full limits.Bound) {
	r.say(func() {
		if full != "" {
			text := "the budget is spent: what does not fit is dropped"
			if r.queue.closed != nil {
				text = "the budget is spent: nothing goes out until there is room"
			}
			r.w.Log.Warn(text, "workload", r.w.Name, "budget", full, "most", r.w.Budget.Most(full))
			return
		}
		if r.queue.closed != nil {
			r.w.Log.Info("the budget is enough again: for a minute nothing was held back for it",
				"workload", r.w.Name, "spent_for", s.Last.Sub(s.From).Round(time.Millisecond))
			return
		}
		r.w.Log.Info("the budget is enough again: for a minute nothing was dropped for it",
			"workload", r.w.Name, "spent_for", s.Last.Sub(s.From).Round(time.Millisecond), "dropped", s.Refused)
	})
}

// watch judges the guard while nothing falls due.
func (r *Runner) watch(ctx context.Context) {
	for {
		seen := r.look()
		r.mu.Lock()
		now := r.align()
		r.judge(now, seen)
		wait := r.queue.guard.Wait(now)
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

// guardLimit is a limit as its series names it.
func guardLimit(l limits.Limit) measure.GuardLimit { return measure.GuardLimit(l.String()) }

// unguard lets no limit be shown as open of a runner that sends nothing any more, with the lock held.
func (r *Runner) unguard() {
	for l := range limits.NumLimits {
		r.count.Guard(guardLimit(l), false)
	}
}

// follow takes over from the runner before what a reload must not make forgotten: what was spent, whatever the budget is now
// and also where there is none, and, where the target is the same, how that has answered and with the same limits what is open.
func (r *Runner) follow(before *Runner) {
	before.mu.Lock()
	defer before.mu.Unlock()
	if old := before.queue.purse; old != nil {
		r.queue.purse = &purse{Budget: r.w.Budget, spent: old.spent, tell: r.tellLarge, turned: r.tellBudget}
	}
	old, mine := before.queue.guard, r.queue.guard
	if old == nil || mine == nil || before.w.Target != r.w.Target {
		return
	}
	mine.Health = old.Health
	if mine.Guard != old.Guard {
		return
	}
	*mine = *old
	r.lacks = mine.Lacks()
	for i, open := range mine.Opened() {
		r.count.Guard(guardLimit(limits.Limit(i)), open)
	}
}
