package dispatch

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"replayd/internal/limits"
	"replayd/internal/measure"
	"replayd/internal/schedule"
	"replayd/internal/trace"
)

// tally counts like measure.Workload.
type tally struct {
	expected, waiting, inFlight, finished, filtered int
	dropped                                         map[measure.DropReason]int
	large                                           []int // rows that alone exceed the whole budget
	slots                                           int   // taken, without those of rows that wait for a lane or are in flight
}

// balance checks the ledger (see MEASURE): expected = finished + dropped + in flight + waiting, none of them negative.
func (c *tally) balance() error {
	sum := c.finished + c.inFlight + c.waiting
	for _, n := range c.dropped {
		sum += n
	}
	if sum != c.expected || c.waiting < 0 || c.inFlight < 0 {
		return fmt.Errorf("want expected = finished + dropped + in flight + waiting, got %+v", *c)
	}
	if c.slots != 0 {
		return fmt.Errorf("want each slot given back, got %d too many", c.slots)
	}
	return nil
}

// A queue gives access to the single parts of a dispatcher's step.
type queue struct {
	*Dispatcher
	c *tally
}

func newQueueOf(c Config) (*queue, *tally) {
	q := &queue{New(c), &tally{dropped: map[measure.DropReason]int{}}}
	q.runs(epoch.Add(-1))
	q.beginLoop(schedule.Loop{Start: epoch}, epoch, Clock{epoch, epoch}, 0, time.Time{})
	return q, q.c
}

func newQueue(lanes int) (*queue, *tally) { return newQueueOf(Config{Lanes: lanes}) }

// count adds the actions of the last part to the tally.
func (q *queue) count() {
	for _, a := range q.out {
		switch a.Kind {
		case Expect:
			q.c.expected++
			q.c.waiting++
		case Filter:
			q.c.filtered++
		case Drop:
			q.c.waiting--
			q.c.dropped[a.Reason]++
		case TooLarge:
			q.c.large = append(q.c.large, a.Row.Due.Number)
		}
	}
	q.out = q.out[:0]
	q.c.slots = q.Slots.taken - q.waiting.n - q.flying
}

func (q *queue) add(l *Loop, r *Row) {
	q.read(l, r)
	q.count()
}

func (q *queue) fire(now time.Time) {
	q.runs(now)
	q.Dispatcher.fire(now)
	q.count()
}

func (q *queue) judge(now time.Time, l limits.Load, err error) {
	q.Dispatcher.judge(now, Reading{Order: q.judged + 1, Load: l, Err: err})
	q.count()
}

func (q *queue) pause(on bool, now time.Time) {
	q.Dispatcher.pause(on, now)
	q.count()
}

func (q *queue) miss(now time.Time) {
	q.Dispatcher.miss(now)
	q.count()
}

func (q *queue) stop() {
	q.Dispatcher.stop()
	q.count()
}

func (q *queue) next() (time.Time, bool) {
	at := q.Dispatcher.next()
	return at, !at.IsZero()
}

// take gives the first row that may be sent to a lane, or returns nil.
func (q *queue) take(now time.Time) *Row {
	r := q.first(now)
	if r != nil {
		q.to(r, flying)
		q.uncount(r)
		q.flying++
		q.free--
		q.c.waiting--
		q.c.inFlight++
	}
	q.count()
	return r
}

// rows returns the rows of a list, in order.
func (l *list) rows() (all []*Row) {
	for r := l.first; r != nil; r = l.after(r) {
		all = append(all, r)
	}
	return all
}

// takeAll gives rows to all free lanes, and returns their numbers and the rows.
func takeAll(q *queue, now time.Time) (rows []int, taken []*Row) {
	for q.free > 0 {
		r := q.take(now)
		if r == nil {
			return rows, taken
		}
		rows, taken = append(rows, r.Due.Number), append(taken, r)
	}
	return rows, taken
}

func (c *tally) end(q *queue, r *Row, ok bool, now time.Time) {
	o := measure.OK
	if !ok {
		o = measure.HTTP5xx
	}
	c.finish(q, r, o, measure.Usage{}, now)
}

func (c *tally) finish(q *queue, r *Row, o measure.Outcome, u measure.Usage, now time.Time) {
	c.inFlight--
	c.finished++
	q.ended(now, Event{Kind: Ended, Row: r, Outcome: o, Usage: u, At: now})
	q.count()
}

var errScrape = errors.New("http://engine/metrics: connection refused")

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func at(ms int) time.Time { return epoch.Add(time.Duration(ms) * time.Millisecond) }

// planned returns a row whose message is built.
func planned(number, ms int, session string, delay time.Duration) *Row {
	return &Row{
		Due: schedule.Due{
			Record: trace.Record{Number: number, Session: session, Delay: delay}, At: at(ms), Loop: schedule.Loop{Start: epoch},
		},
		Message: Message{Body: []byte("x")}, Seq: int64(number),
	}
}

func want[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		t.Errorf("%s: want %v, got %v", what, w, g)
	}
}

// TestPackageCommentNamesFiles checks that the files listed in the package comment exist.
func TestPackageCommentNamesFiles(t *testing.T) {
	text, err := os.ReadFile("dispatch.go")
	if err != nil {
		t.Fatal(err)
	}
	about, _, _ := strings.Cut(string(text), "\npackage ")
	named := regexp.MustCompile(`(?m)^//\t(\w+\.go) `).FindAllStringSubmatch(about, -1)
	if len(named) < 10 {
		t.Errorf("want files in the package comment, got %v", named)
	}
	for _, m := range named {
		if _, err := os.Stat(m[1]); err != nil {
			t.Error(err)
		}
	}
}
