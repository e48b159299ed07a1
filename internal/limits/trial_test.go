package limits

import (
	"testing"
	"time"
)

// A breaker that is open only because of errors is half open: it admits one trial in flight at a time and one per
// second.
func TestHalfOpen(t *testing.T) {
	b := NewBreaker(Guard{Waiting: 8, ErrorRatio: 0.5})
	for range 5 {
		b.Health.Ended(at(0), true)
	}
	b.Step(at(0), Load{}, nil)
	want(t, "state", b.State(), HalfOpen)
	want(t, "open", b.Opened(), [NumLimits]bool{ErrorRatio: true})
	want(t, "since", b.Since(), at(0))
	admit := func(ms int, ok bool) {
		t.Helper()
		want(t, "refuses", b.Refuses(at(ms)), !ok)
		want(t, "is a trial", b.Try(at(ms)), ok)
	}
	admit(0, true)
	admit(5000, false) // the first is in flight
	b.Tried(true)
	admit(5000, true)
	b.Tried(true)
	admit(5999, false) // less than 1 s after the last trial
	admit(6000, true)
	b.Tried(false)
	admit(6001, true) // a request that was never sent does not count as a trial
	b.Tried(true)
	b.Step(at(7100), Load{Waiting: 8}, nil)
	admit(7100, false) // another limit is reached too
	want(t, "state", b.State(), Open)
	var none *Breaker
	want(t, "state of none", none.State(), Closed)
	want(t, "refused without one", none.Refuses(at(0)), false)
	want(t, "a trial without one", none.Try(at(0)), false)
}

// With no new events, an open limit closes only by time. Wait returns the time until the next look.
func TestWait(t *testing.T) {
	b := NewBreaker(Guard{Waiting: 8, ResumeAfter: 2300 * time.Millisecond})
	b.Step(at(0), Load{Waiting: 8}, nil)
	want(t, "wait", b.Wait(at(0)), LookEvery)
	want(t, "wait", b.Wait(at(2000)), 300*time.Millisecond)
	b.Step(at(2300), Load{}, nil)
	want(t, "state", b.State(), Closed)
}

func TestBudgetSays(t *testing.T) {
	b := Budget{RequestsPerMinute: 1, PromptTokensPerHour: 20, OutputTokensPerDay: 300}
	for of, most := range map[Bound]int64{RequestsPerMinute: 1, PromptTokensPerHour: 20, OutputTokensPerDay: 300, "": 0} {
		want(t, "most of "+string(of), b.Most(of), most)
	}
	want(t, "a prompt that is too long", b.Exceeds(Cost{Prompt: 21}), true)
	want(t, "one that is not", b.Exceeds(Cost{Prompt: 20, Output: 300}), false)
	s := NewSpending()
	want(t, "full of nothing", s.Full(at(0), Cost{Requests: 1, Prompt: 9, Output: 9}, b), Bound(""))
	s.Charge(at(0), Cost{Requests: 1, Prompt: 9, Output: 9}, b)
	want(t, "full", s.Full(at(0), Cost{Requests: 1, Prompt: 9, Output: 9}, b), RequestsPerMinute)
	want(t, "spent", s.Spent(at(0)), Cost{Requests: 1, Prompt: 9, Output: 9})
	for i, refused := range []bool{true, true, false} {
		_, turned := s.Turn(at(i*60_000), refused)
		want(t, "a spell turns", turned, i != 1)
	}
}
