package dispatch

import (
	"time"

	"replayd/internal/limits"
	"replayd/internal/measure"
)

// A hold is what keeps a row from a lane.
type hold uint8

const (
	nothing  hold = iota
	paused        // by an operator
	guarded       // by the guard
	tooLarge      // it alone is more than the whole budget
	spent         // the budget has too little left
	noLane        // no lane is free for it
	invalid       // its message cannot be built or written
	unbuilt       // its message is not there yet
)

// reason is what a row is dropped for that its loop does not let wait.
func (h hold) reason() measure.DropReason {
	return [...]measure.DropReason{
		paused: measure.Paused, guarded: measure.Guarded, tooLarge: measure.Budget, spent: measure.Budget,
		noLane: measure.Overload, invalid: measure.Invalid, unbuilt: measure.Overload,
	}[h]
}

// may answers the one question of a replay: may this row go now, with so many rows that wait before it? It changes nothing.
// What becomes of a row that is held is for its loop to say: an open one drops it, or lets it wait for a lane and its message; a
// closed one lets it wait.
//
// The order is that of who has the last word: an operator's pause, then the guard, where a row that was let through as the trial of
// a half-open one passes, then the budget, unless the row has paid, then the lane, then the message.
func (d *Dispatcher) may(r *Row, before int, now time.Time) hold {
	pays := d.Spending != nil && r.charged.IsZero() && r.Message.Err == nil
	switch {
	case d.paused:
		return paused
	case !r.trial && d.Breaker.Refuses(now):
		return guarded
	case pays && d.Budget.Exceeds(costOf(r)):
		return tooLarge
	case pays && d.Spending.Full(now, costOf(r), d.Budget) != "":
		return spent
	case d.free <= before:
		return noLane
	case r.Message.Err != nil:
		return invalid
	case r.Message.Body == nil:
		return unbuilt
	}
	return nothing
}

// tryOut takes the permit of a half-open guard for a row that may go.
func (d *Dispatcher) tryOut(r *Row, now time.Time) {
	if !r.trial {
		_, r.trial = d.Breaker.Admit(now)
	}
}

// endTrial lets there be another trial where a row was one that has ended, or was never sent.
func (d *Dispatcher) endTrial(r *Row, sent bool) {
	if r.trial {
		d.Breaker.Tried(sent)
		r.trial = false
	}
}

func costOf(r *Row) limits.Cost {
	return limits.Cost{Requests: 1, Prompt: int64(r.Due.InputTokens), Output: int64(r.Due.OutputTokens)}
}

// pay charges a row that is to be sent. One without a message costs nothing: nothing is sent.
func (d *Dispatcher) pay(r *Row, now time.Time) {
	if d.Spending == nil || r.Message.Err != nil || !r.charged.IsZero() {
		return
	}
	charged, _ := d.Spending.Charge(now, costOf(r), d.Budget)
	r.charged, r.cost = now, charged
	if s, turned := d.Spending.Turn(now, false); turned {
		d.do(Action{Kind: BudgetSpell, Spell: s})
	}
}

// refused notes that the budget has held a row back.
func (d *Dispatcher) refused(r *Row, why hold, now time.Time) {
	if why == tooLarge {
		d.do(Action{Kind: TooLarge, Row: r})
		return
	}
	full := d.Spending.Full(now, costOf(r), d.Budget)
	if s, turned := d.Spending.Turn(now, true); turned {
		d.do(Action{Kind: BudgetSpell, Spell: s, Bound: full})
	}
}

// refund gives back what a row was charged that is not sent.
func (d *Dispatcher) refund(r *Row) {
	if r.charged.IsZero() {
		return
	}
	d.Spending.Amend(r.charged, limits.Cost{Requests: -r.cost.Requests, Prompt: -r.cost.Prompt, Output: -r.cost.Output})
	r.charged = time.Time{}
}

// correct puts what the server says that a request has cost in the place of what was charged. Chunks that were counted
// for want of anything better are a lower bound, and a prompt of no tokens is none that the server has counted.
func (d *Dispatcher) correct(r *Row, o measure.Outcome, said measure.Usage) {
	if r.charged.IsZero() || o != measure.OK {
		return
	}
	used := limits.Cost{Prompt: int64(said.Prompt), Output: int64(said.Output)}
	if said.Source == measure.UsageCounted && r.Due.OutputTokens > 0 {
		used.Output = max(used.Output, r.cost.Output)
	}
	if used.Prompt == 0 {
		used.Prompt = r.cost.Prompt
	}
	d.Spending.Amend(r.charged, limits.Cost{Prompt: used.Prompt - r.cost.Prompt, Output: used.Output - r.cost.Output})
	var unplanned limits.Cost
	if r.Due.InputTokens == 0 {
		unplanned.Prompt = int64(said.Prompt)
	}
	if r.Due.OutputTokens == 0 {
		unplanned.Output = int64(said.Output)
	}
	d.Spending.Learn(unplanned)
}
