package dispatch

import (
	"time"

	"replayd/internal/limits"
	"replayd/internal/measure"
)

// A refusal is the reason why a row may not go to a lane now.
type refusal uint8

const (
	nothing  refusal = iota
	paused           // an operator has paused the workload
	guarded          // a limit of the guard is open
	tooLarge         // the request alone exceeds the whole budget
	spent            // the rest of the budget is too small for the request
	noLane           // no lane is free
	invalid          // the message cannot be built or written
	unbuilt          // the message is not built yet
)

// reason is the drop reason of a refused row, in a loop where the row cannot wait. A guard that is open because
// this process did not read the engine's page is no fault of the engine.
func (d *Dispatcher) reason(h refusal) measure.DropReason {
	if h == guarded && d.Breaker.Unread() {
		return measure.Missed
	}
	return [...]measure.DropReason{
		paused: measure.Paused, guarded: measure.Guarded, tooLarge: measure.Budget, spent: measure.Budget,
		noLane: measure.Overload, invalid: measure.Invalid, unbuilt: measure.Overload,
	}[h]
}

// may decides admission: it returns why a row may not be sent now, with before rows waiting ahead of it. It changes nothing.
//
// The checks are in order of precedence:
//
//  1. an operator's pause
//  2. the guard; the trial of a half-open guard passes
//  3. the budget, unless the row has paid
//  4. a free lane
//  5. the message
//
// The caller decides about a refused row. An open loop drops it or lets it wait for a lane and its message; a
// closed loop lets it wait.
func (d *Dispatcher) may(r *Row, before int, now time.Time) refusal {
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

// tryOut makes a row that may go the trial of a half-open guard.
func (d *Dispatcher) tryOut(r *Row, now time.Time) {
	if !r.trial {
		r.trial = d.Breaker.Try(now)
	}
}

// endTrial releases the permit of a trial that has ended or was never sent, so that another row can be the trial.
func (d *Dispatcher) endTrial(r *Row, sent bool) {
	if r.trial {
		d.Breaker.Tried(sent)
		r.trial = false
	}
}

func costOf(r *Row) limits.Cost {
	return limits.Cost{Requests: 1, Prompt: int64(r.Due.InputTokens), Output: int64(r.Due.OutputTokens)}
}

// pay charges a row that will be sent. A row whose message failed costs nothing, since no request is sent.
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

// SendAgain charges the second send of a row. It returns the bound of the budget that the send would exceed, and must not
// follow then; "": it may.
func (d *Dispatcher) SendAgain(r *Row, now time.Time) (full limits.Bound) {
	if d.Spending != nil && !r.charged.IsZero() {
		_, full = d.Spending.Charge(now, costOf(r), d.Budget)
	}
	return full
}

func (d *Dispatcher) refused(r *Row, why refusal, now time.Time) {
	if why == tooLarge {
		d.do(Action{Kind: TooLarge, Row: r})
		return
	}
	full := d.Spending.Full(now, costOf(r), d.Budget)
	if s, turned := d.Spending.Turn(now, true); turned {
		d.do(Action{Kind: BudgetSpell, Spell: s, Bound: full})
	}
}

func (d *Dispatcher) refund(r *Row) {
	if r.charged.IsZero() {
		return
	}
	d.Spending.Amend(r.charged, limits.Cost{Requests: -r.cost.Requests, Prompt: -r.cost.Prompt, Output: -r.cost.Output})
	r.charged = time.Time{}
}

// correct replaces the charge of a request by its usage as the server reports it. A count of chunks, used where the server
// reports no usage, is a lower bound of the output tokens. A reported prompt of 0 tokens means that the server did not count it.
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
