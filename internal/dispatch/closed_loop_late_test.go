package dispatch

import (
	"fmt"
	"testing"
	"time"
)

// In a long trace with interleaved sessions, a turn may be read long after the turn before has ended. Its delay and its
// gap still count from the times of that turn.
func TestClosedQueueTurnReadLate(t *testing.T) {
	for name, c := range map[string]struct {
		delay, gap time.Duration
		due        int // ms
	}{
		"delay":           {delay: 50 * time.Millisecond, due: 60},
		"gap":             {gap: 50 * time.Millisecond, due: 50},
		"neither":         {due: 20},
		"both over":       {delay: 5 * time.Millisecond, gap: 15 * time.Millisecond, due: 20},
		"one of them not": {delay: 5 * time.Millisecond, gap: 30 * time.Millisecond, due: 30},
	} {
		t.Run(name, func(t *testing.T) {
			q, c2 := newClosedQueue(1)
			q.add(q.loops[0], planned(0, 0, "s", 0))
			q.fire(at(0))
			_, flying := takeAll(q, at(0))
			c2.end(q, flying[0], true, at(10))
			it := planned(1, 0, "s", c.delay)
			it.Due.Gap = c.gap
			q.add(q.loops[0], it)
			q.add(q.loops[0], planned(2, 0, "s", 0))
			q.fire(at(20))
			for ms := 20; ms < c.due; ms++ {
				q.fire(at(ms))
				rows, _ := takeAll(q, at(ms))
				want(t, fmt.Sprint("sent at ", ms), rows, []int(nil))
			}
			if next, ok := q.next(); c.due > 20 && (!ok || !next.Equal(at(c.due))) {
				t.Errorf("next instant: want %v, got %v, %t", at(c.due), next, ok)
			}
			q.fire(at(c.due))
			rows, flying := takeAll(q, at(c.due))
			want(t, "sent then", rows, []int{1})
			if len(flying) == 1 {
				want(t, "due", flying[0].Due.At, at(c.due))
				c2.end(q, flying[0], true, at(c.due+5))
				rows, _ = takeAll(q, at(c.due+5))
				want(t, "the turn behind it", rows, []int{2})
			}
			want(t, "balance", c2.balance(), error(nil))
		})
	}
}
