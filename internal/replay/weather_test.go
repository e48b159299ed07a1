package replay

import (
	"fmt"
	"math/rand/v2"
	"time"

	"replayd/internal/measure"
)

// A weather is an engine's load that changes at random, and an eye on what guard and budget let through meanwhile.
type weather struct {
	rnd   *rand.Rand
	load  Load
	err   error
	trial time.Time // when the last one was sent
	sent  []time.Time
}

// newWeather gives half of the queues a guard and half of them a budget.
func newWeather(rnd *rand.Rand, q *queue) *weather {
	if rnd.IntN(2) == 0 {
		q.guard = newGuard(Guard{
			Waiting: 8, ErrorRatio: float64(rnd.IntN(2)) * 0.1, ResumeAfter: time.Duration(rnd.IntN(3)*rnd.IntN(200)) * time.Millisecond,
		})
	}
	if rnd.IntN(2) == 0 {
		q.purse = newPurse(Budget{RequestsPerMinute: rnd.Int64N(50)})
		if q.purse != nil {
			q.purse.turned = func(spell, bound) {}
		}
	}
	return &weather{rnd: rnd}
}

func (w *weather) change(q *queue, now time.Time) {
	if q.guard == nil {
		return
	}
	if w.rnd.IntN(100) == 0 {
		w.load.Waiting, w.err = float64(w.rnd.IntN(10)), []error{nil, nil, nil, errScrape}[w.rnd.IntN(4)]
	}
	q.judge(now, w.load, w.err)
}

// judge says what is wrong with what lanes have just taken.
func (w *weather) judge(q *queue, taken []*item, now time.Time) error {
	if q.guard.holds() == all && q.waiting.len() > 0 {
		return fmt.Errorf("%d wait while %s", q.waiting.len(), q.guard.words(now))
	}
	return w.judgeClosed(q, taken, now)
}

// judgeClosed is judge of a closed plan, whose rows may wait.
func (w *weather) judgeClosed(q *queue, taken []*item, now time.Time) error {
	held := q.guard.holds()
	if held == all && len(taken) > 0 {
		return fmt.Errorf("%d taken while %s", len(taken), q.guard.words(now))
	}
	for _, it := range taken {
		if held == allButOne && !it.trial {
			return fmt.Errorf("row %d was taken while %s", it.due.Number, q.guard.words(now))
		}
		if it.trial {
			if ago := now.Sub(w.trial); ago < time.Second {
				return fmt.Errorf("a trial %v after the last", ago)
			}
			w.trial = q.guard.health.latest
		}
		if q.purse != nil {
			w.sent = append(w.sent, now)
			minute := 0
			for _, at := range w.sent {
				if !at.Before(now.Add(-time.Minute)) {
					minute++
				}
			}
			if over(int64(minute), q.purse.RequestsPerMinute) {
				return fmt.Errorf("%d within a minute, of a budget of %d", minute, q.purse.RequestsPerMinute)
			}
		}
	}
	return nil
}

func (w *weather) end(q *queue, c *tally, it *item, ok bool, now time.Time) {
	if q.guard != nil {
		q.guard.health.ended(now, map[bool]measure.Outcome{true: measure.OK, false: measure.HTTP5xx}[ok])
		q.judge(now, w.load, w.err)
	}
	c.end(q, it, ok, now)
}
