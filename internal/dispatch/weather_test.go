package dispatch

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"replayd/internal/limits"
)

// A weather changes the engine's load at random, and checks what the guard and the budget admit.
type weather struct {
	rnd   *rand.Rand
	load  limits.Load
	err   error
	trial time.Time         // when the last trial that was sent was admitted
	let   map[int]time.Time // when each trial was admitted, by row
	sent  []time.Time
}

// newWeather gives a guard to half of the queues and a budget to half of them.
func newWeather(rnd *rand.Rand, q *queue) *weather {
	if rnd.IntN(2) == 0 {
		q.Breaker = limits.NewBreaker(limits.Guard{
			Waiting: 8, ErrorRatio: float64(rnd.IntN(2)) * 0.1, ResumeAfter: time.Duration(rnd.IntN(3)*rnd.IntN(200)) * time.Millisecond,
		})
	}
	if rnd.IntN(2) == 0 {
		if b := (limits.Budget{RequestsPerMinute: rnd.Int64N(50)}); b != (limits.Budget{}) {
			q.Budget, q.Spending = b, limits.NewSpending()
		}
	}
	return &weather{rnd: rnd, let: map[int]time.Time{}}
}

func (w *weather) change(q *queue, now time.Time) {
	if q.Breaker == nil {
		return
	}
	if w.rnd.IntN(100) == 0 {
		w.load.Waiting, w.err = float64(w.rnd.IntN(10)), []error{nil, nil, nil, errScrape}[w.rnd.IntN(4)]
	}
	q.judge(now, w.load, w.err)
}

// judge returns an error if the taken or waiting rows violate the guard or the budget.
func (w *weather) judge(q *queue, taken []*Row, now time.Time) error {
	if q.Breaker.State() == limits.Open && q.waiting.n > 0 {
		return fmt.Errorf("%d wait while %s", q.waiting.n, q.Breaker.Words(now))
	}
	return w.judgeClosed(q, taken, now)
}

// judgeClosed is judge for a closed plan, whose rows may wait while the guard is open.
func (w *weather) judgeClosed(q *queue, taken []*Row, now time.Time) error {
	for _, it := range slices.Concat(q.waiting.rows(), taken) {
		if _, known := w.let[it.Due.Number]; it.trial && !known {
			w.let[it.Due.Number] = now
		}
	}
	held := q.Breaker.State()
	if held == limits.Open && len(taken) > 0 {
		return fmt.Errorf("%d taken while %s", len(taken), q.Breaker.Words(now))
	}
	for _, it := range taken {
		if held == limits.HalfOpen && !it.trial {
			return fmt.Errorf("row %d was taken while %s", it.Due.Number, q.Breaker.Words(now))
		}
		if it.trial {
			let := w.let[it.Due.Number]
			if ago := let.Sub(w.trial); ago < time.Second {
				return fmt.Errorf("a trial %v after the last", ago)
			}
			w.trial = let
		}
		if q.Spending != nil {
			w.sent = append(w.sent, now)
			minute := 0
			for _, at := range w.sent {
				if !at.Before(now.Add(-time.Minute)) {
					minute++
				}
			}
			if most := q.Budget.RequestsPerMinute; most > 0 && int64(minute) > most {
				return fmt.Errorf("%d within a minute, of a budget of %d", minute, q.Budget.RequestsPerMinute)
			}
		}
	}
	return nil
}

func (w *weather) end(q *queue, c *tally, it *Row, ok bool, now time.Time) {
	if q.Breaker != nil {
		q.judge(now, w.load, w.err)
	}
	c.end(q, it, ok, now)
}

// trialLeft returns an error if an idle guard still counts a trial as in flight.
func trialLeft(g *limits.Breaker) error {
	if g == nil || g.ErrorRatio == 0 {
		return nil
	}
	later := epoch.Add(24 * time.Hour)
	for range 5 {
		g.Health.Ended(later, true)
	}
	g.Step(later, limits.Load{}, nil)
	if g.State() == limits.HalfOpen && g.Refuses(later) {
		return errors.New("a trial never ended")
	}
	return nil
}
