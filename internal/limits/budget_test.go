package limits

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// No minute, hour or day costs more than the budget, wherever it begins, as long as no request costs more than planned.
// No request is refused that would fit into the 61 slots of a window.
func TestBudgetHoldsWhereverItBegins(t *testing.T) {
	for seed := range uint64(100) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		b := Budget{int64(rnd.IntN(20)), int64(rnd.IntN(2000)), int64(rnd.IntN(2000))}
		l := NewSpending()
		type spent struct {
			at time.Time
			Cost
		}
		var all []spent
		within := func(from, to time.Time) (sum Cost) { // inclusive
			for _, s := range all {
				if !s.at.Before(from) && !s.at.After(to) {
					sum.Requests += s.Requests
					sum.Prompt += s.Prompt
					sum.Output += s.Output
				}
			}
			return sum
		}
		step := []time.Duration{100 * time.Millisecond, 3 * time.Second, time.Minute, 30 * time.Minute}[rnd.IntN(4)]
		now, refused := epoch, 0
		for range 400 {
			now = now.Add(time.Duration(rnd.Int64N(int64(step))) * time.Duration(rnd.IntN(3)))
			c := Cost{1, int64(rnd.IntN(100)), int64(rnd.IntN(100))}
			if charged, full := l.Charge(now, c, b); full == "" {
				all = append(all, spent{now, charged})
			} else {
				refused++
				minute, hour, day := within(now.Add(-61*time.Second), now), within(now.Add(-61*time.Minute), now), within(now.Add(-61*24*time.Minute), now)
				if !exceeds(minute.Requests+1, b.RequestsPerMinute) && !exceeds(hour.Prompt+max(1, c.Prompt), b.PromptTokensPerHour) &&
					!exceeds(day.Output+max(1, c.Output), b.OutputTokensPerDay) {
					t.Fatalf("seed %d: %+v was refused after %v, with %+v, %+v and %+v spent of %+v", seed, c, now.Sub(epoch), minute, hour, day, b)
				}
			}
			if n := len(all); n > 0 && rnd.IntN(3) == 0 { // a request ends
				s := &all[n-1-rnd.IntN(min(n, 30))]
				less := Cost{0, -rnd.Int64N(s.Prompt + 1), -rnd.Int64N(s.Output + 1)}
				l.Amend(s.at, less)
				s.Cost = Cost{s.Requests, s.Prompt + less.Prompt, s.Output + less.Output}
			}
		}
		for _, s := range all {
			minute, hour, day := within(s.at, s.at.Add(time.Minute)), within(s.at, s.at.Add(time.Hour)), within(s.at, s.at.Add(24*time.Hour))
			if exceeds(minute.Requests, b.RequestsPerMinute) || exceeds(hour.Prompt, b.PromptTokensPerHour) || exceeds(day.Output, b.OutputTokensPerDay) {
				t.Fatalf("seed %d: from %v on: %+v, %+v, %+v, over the budget of %+v", seed, s.at.Sub(epoch), minute, hour, day, b)
			}
		}
		if b == (Budget{}) && refused > 0 {
			t.Errorf("seed %d: %d refused without a budget", seed, refused)
		}
	}
}

// A mean follows about the last hundred values.
func TestMean(t *testing.T) {
	var m mean
	for _, step := range []struct {
		times          int
		tokens, expect int64
	}{
		{0, 0, 1},
		{1, 7, 7},
		{1, 8, 8},
		{1, 0, 8},
		{2, 10, 9},
		{10_000, 10, 10},
		{100, 1000, 638}, // 1000 − 990·0.99^100 = 637.6
	} {
		for range step.times {
			m.learn(step.tokens)
		}
		want(t, fmt.Sprint("after ", step), m.reserve(0), step.expect)
	}
	want(t, "within a bound", m.reserve(600), int64(600))
}

// A spell reports its begin and its end. It ends with the first admitted request at least a minute after the last
// refused one.
func TestSpell(t *testing.T) {
	var s Spell
	for _, step := range []struct {
		ms      int
		refused bool
		turned  string
	}{
		{0, false, ""},
		{1000, true, "0s 1"},
		{1001, true, ""},
		{1002, false, ""}, // a small request still fits
		{30_000, true, ""},
		{89_999, false, ""},
		{90_000, false, "29s 3"},
		{90_001, false, ""},
		{90_002, true, "0s 1"},
		{300_000, true, ""}, // no request came in between
		{300_001, false, ""},
		{400_000, false, "3m29.998s 2"},
	} {
		got := ""
		if of, turned := s.Turn(at(step.ms), step.refused); turned {
			got = fmt.Sprint(of.Last.Sub(of.From), " ", of.Refused)
		}
		want(t, fmt.Sprint("told at ", step.ms, " ms"), got, step.turned)
	}
}

// A correction is booked in the slot of its charge, and only while that slot is in the window.
func TestCorrectionGoesToItsSlot(t *testing.T) {
	l, b := NewSpending(), Budget{RequestsPerMinute: 9, PromptTokensPerHour: 100}
	full := func(what string, at time.Time, prompt int64, is Bound) {
		t.Helper()
		_, got := l.Charge(at, Cost{1, prompt, 1}, b)
		want(t, what, got, is)
	}
	full("fits", at(0), 50, "")
	full("fits", at(0).Add(30*time.Minute), 50, "")
	l.Amend(at(0), Cost{0, 30, 0})
	want(t, "more than the budget", l.prompt.sum, int64(130))
	full("fits meanwhile", at(0).Add(61*time.Minute-1), 1, PromptTokensPerHour)
	full("fits when the first is forgotten", at(0).Add(61*time.Minute), 50, "")
	l.Amend(at(0), Cost{0, -30, 0})
	want(t, "spent", l.prompt.sum, int64(100))
}
