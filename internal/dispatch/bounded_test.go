package dispatch

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"replayd/internal/limits"
	"replayd/internal/measure"
	"replayd/internal/schedule"
	"replayd/internal/trace"
)

// The work of each event is bounded by the rows and edges that it touches, times the logarithm for a heap, whatever the
// graph: dense joins, diamonds one after the other, parents that are not there, chains, single rows. A visit is each
// look of a loop at a row or an edge. A row is touched if a field of it changes; an edge if the row that it comes from
// changes its state or its fate, or if it is counted off at the row that it leads to. Each life ends by itself, and its
// ledger balances after each event.
//
// BOUNDED_LIVES is the number of lives (default 100).
func TestWorkIsBounded(t *testing.T) {
	seeds := uint64(100)
	if testing.Short() {
		seeds = 20
	}
	if n, err := strconv.ParseUint(os.Getenv("BOUNDED_LIVES"), 10, 32); err == nil {
		seeds = n
	}
	fates := map[measure.DropReason]int{}
	worst, rows, slowed := 0.0, 0, 0
	for seed := range seeds {
		share := float64(seed+1) / float64(seeds) // small graphs come first: exponential work is found before it hangs
		b := newBoundedLife(seed, 8+int(992*share*share))
		if err := b.run(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for why, n := range b.fates {
			fates[why] += n
		}
		worst, rows, slowed = max(worst, b.worst), max(rows, len(b.rows)), slowed+b.slowed
	}
	for _, why := range []measure.DropReason{
		measure.SessionFailed, measure.Paused, measure.Guarded, measure.Shutdown, measure.Overload, measure.Missed, measure.Invalid, measure.Budget,
	} {
		if fates[why] == 0 && !testing.Short() {
			t.Errorf("no row was dropped as %s: that was not put to the test", why)
		}
	}
	if slowed == 0 && !testing.Short() {
		t.Error("no closed loop slowed down: that was not put to the test")
	}
	t.Logf("up to %d rows; at most %.2f visits for each row or edge and level of a heap; dropped %v; slowed down %d times",
		rows, worst, fates, slowed)
}

// maxVisits is the bound of the visits of an event for each row and edge that it touches.
const maxVisits = 2

// A boundedLife plays a random graph of up to 1,000 rows and counts visits.
type boundedLife struct {
	rnd    *rand.Rand
	d      *Dispatcher
	rows   []*Row
	edges  int
	next   [][]int // rows that name a row as their parent
	prints []fingerprint
	now    time.Time
	wake   time.Time
	build  *Row
	flying []*Row
	read   int
	load   Reading
	done   bool
	worst  float64
	fault  error

	fates                               map[measure.DropReason]int
	expected, finished, dropped, slowed int
}

// A fingerprint has the fields of a row that events change.
type fingerprint struct {
	state                                           state
	expected, built, building, late, released, gone bool
	why                                             measure.DropReason
	pending, apart                                  int
}

func printOf(r *Row) fingerprint {
	p := fingerprint{
		state: r.state, expected: r.expected, built: r.Message.Body != nil || r.Message.Err != nil, building: r.building, late: r.late,
	}
	if t := r.turn; t != nil {
		p.why, p.released, p.gone, p.pending, p.apart = t.over, t.released, t.gone, t.pending, t.apart
	}
	return p
}

func newBoundedLife(seed uint64, most int) *boundedLife {
	rnd := rand.New(rand.NewPCG(seed, 39))
	b := &boundedLife{rnd: rnd, now: epoch, fates: map[measure.DropReason]int{}}
	c := Config{
		Lanes: 1 + rnd.IntN(40), Closed: rnd.IntN(3) == 0, History: rnd.IntN(3) == 0, DropLate: rnd.IntN(5) == 0, Ahead: 1 << rnd.IntN(20),
		MaxWait: time.Duration(rnd.IntN(2)*rnd.IntN(400)) * time.Millisecond, Spending: limits.NewSpending(),
	}
	if c.Closed && rnd.IntN(2) == 0 {
		c.Sessions = 1 + rnd.IntN(20)
	}
	if rnd.IntN(3) == 0 {
		c.Breaker = limits.NewBreaker(limits.Guard{Waiting: 5})
	}
	if rnd.IntN(4) == 0 {
		c.Budget = limits.Budget{RequestsPerMinute: int64(1 + rnd.IntN(100))}
	}
	b.d = New(c)
	b.draw(1 + rnd.IntN(most))
	b.step(Event{Kind: Bounds, At: epoch})
	b.step(Event{Kind: LoopBegun, Plan: schedule.Loop{Start: epoch}})
	return b
}

// draw draws the rows of one shape of graph.
func (b *boundedLife) draw(n int) {
	shape, sessions, dense := b.rnd.IntN(6), 1+b.rnd.IntN(4), 1+b.rnd.IntN(12)
	filtered, once := b.rnd.IntN(3) == 0, b.rnd.IntN(3) == 0
	b.next = make([][]int, n)
	last := map[int]int{}
	for i := range n {
		s := i % sessions
		rec := trace.Record{Number: i, Session: fmt.Sprint("s", s), After: []trace.Edge{}}
		name := func(row int) {
			rec.After = append(rec.After, trace.Edge{Row: row, Wait: time.Duration(b.rnd.IntN(3)/2) * time.Millisecond})
		}
		before, known := last[s]
		switch {
		case shape == 0: // diamonds: every third row joins the two before it
			for k := max(0, i/sessions%3*2-2); k >= 0 && known; k-- {
				name(before - k*sessions)
			}
			if i/sessions%3 == 1 && known {
				name(before)
			}
		case shape == 1 && known: // dense joins
			for k := range dense {
				name(before - k*sessions)
			}
		case shape == 2: // joins of everything before
			for k := i - 1; k >= 0 && b.edges < 1<<16; k-- {
				if k%sessions == s {
					name(k)
				}
			}
		case shape == 3: // any row, also one that is not there
			for range b.rnd.IntN(8) {
				name(b.rnd.IntN(n+50) - 25)
			}
		case shape == 4: // turns one after the other
			rec.After = nil
			rec.Delay = time.Duration(b.rnd.IntN(3)) * time.Millisecond
			if known {
				b.next[before] = append(b.next[before], i)
				b.edges++
			}
		case shape == 5: // rows without a session: no failure costs another row
			rec.Session, rec.After = "", nil
		}
		for _, e := range rec.After {
			b.edges++
			if e.Row >= 0 && e.Row < i {
				b.next[e.Row] = append(b.next[e.Row], i)
			}
		}
		last[s] = i
		at := epoch
		if !once {
			at = at.Add(time.Duration(i*b.rnd.IntN(4)) * time.Millisecond / 2)
			if i > 0 && at.Before(b.rows[i-1].Due.At) {
				at = b.rows[i-1].Due.At
			}
		}
		if b.d.closed != nil {
			at = epoch
		}
		b.rows = append(b.rows, &Row{
			Due: schedule.Due{Record: rec, At: at}, Seq: int64(i), Weight: 100, Size: 100, Filtered: filtered && b.rnd.IntN(9) == 0,
		})
	}
	b.prints = make([]fingerprint, n)
}

// step passes an event on, and compares the visits with the rows and edges that it has touched.
func (b *boundedLife) step(e Event) {
	e.Seen = b.load
	before := b.d.visits
	for _, a := range b.d.Step(Clock{b.now, b.now}, e) {
		switch a.Kind {
		case Send:
			b.flying = append(b.flying, a.Row)
		case Expect:
			b.expected++
		case Drop:
			b.dropped++
			b.fates[a.Reason]++
		case Build:
			b.build = a.Row
		case Release:
			a.Row.Message.Body = nil
		case Slowed:
			b.slowed++
		case WakeAt:
			b.wake = a.At
		case Done:
			b.done = true
		}
	}
	touched := 1
	if e.Kind == RowRead {
		touched += 1 + len(e.Row.Due.After)
	}
	for i, r := range b.rows[:b.read] {
		now, was := printOf(r), b.prints[i]
		if now == was {
			continue
		}
		b.prints[i] = now
		touched += 1 + max(0, was.pending-now.pending) + max(0, was.apart-now.apart)
		if now.state != was.state || now.why != was.why || now.released != was.released {
			touched += len(b.next[i])
		}
	}
	bound := touched * (1 + bits.Len(uint(len(b.rows))))
	visits := b.d.visits - before
	b.worst = max(b.worst, float64(visits)/float64(bound))
	if visits > maxVisits*bound && b.fault == nil {
		b.fault = fmt.Errorf("at %v, event %d: %d visits, with %d rows and edges touched of %d and %d",
			b.now.Sub(epoch), e.Kind, visits, touched, len(b.rows), b.edges)
	}
	if due := b.d.waiting.n + b.d.blocked.n + b.inDelay(); b.expected != b.finished+b.dropped+len(b.flying)+due && b.fault == nil {
		b.fault = fmt.Errorf("at %v, event %d: %d expected, %d finished, %d dropped, %d in flight, %d waiting",
			b.now.Sub(epoch), e.Kind, b.expected, b.finished, b.dropped, len(b.flying), due)
	}
}

// inDelay returns how many rows are due and in their delay.
func (b *boundedLife) inDelay() (n int) {
	for _, r := range b.d.delayed.rows {
		if r.expected {
			n++
		}
	}
	return n
}

// run plays the rows until nothing is left.
func (b *boundedLife) run() error {
	failing, lazy := b.rnd.IntN(30), 1+b.rnd.IntN(3)
	calm, down := 1000*b.rnd.IntN(2), epoch // until down every request fails
	if b.rows[0].Due.Session == "" {
		down = epoch.Add(time.Duration(b.rnd.IntN(1000)) * time.Millisecond)
	}
	for stop := false; !b.done && b.fault == nil; {
		if b.now = b.now.Add(time.Millisecond); b.now.Sub(epoch) > 3*time.Minute {
			return fmt.Errorf("no end: %d of %d rows read, %d in flight", b.read, len(b.rows), len(b.flying))
		}
		for !stop && b.read < len(b.rows) {
			r := b.rows[b.read]
			if room, _ := b.d.Room(b.d.Loop(0), r.Due.At, b.now); room != Free {
				break
			}
			b.read++
			b.step(Event{Kind: RowRead, Loop: b.d.Loop(0), Row: r})
		}
		if b.read == len(b.rows) && !b.d.fed {
			b.step(Event{Kind: LoopRead, Loop: b.d.Loop(0)})
			b.step(Event{Kind: FeedEnded})
		}
		for range 40 / lazy {
			if b.build == nil {
				b.step(Event{Kind: Poll})
			}
			if r := b.build; r != nil {
				b.build = nil
				m := Message{Body: []byte("x")}
				if b.rnd.IntN(500) == 0 {
					m = Message{Err: errScrape}
				}
				b.step(Event{Kind: Built, Row: r, Message: m})
			}
		}
		for range (len(b.flying) + lazy - 1) / lazy {
			i := b.rnd.IntN(len(b.flying))
			r := b.flying[i]
			b.flying[i] = b.flying[len(b.flying)-1]
			b.flying = b.flying[:len(b.flying)-1]
			b.finished++
			o := measure.OK
			if b.rnd.IntN(1000) < failing || b.now.Before(down) {
				o = measure.HTTP5xx
			}
			b.step(Event{Kind: Ended, Row: r, Outcome: o, Write: b.now, First: b.now, At: b.now, Text: []byte("a")})
		}
		switch b.rnd.IntN(100 + calm) {
		case 0:
			b.step(Event{Kind: Pause, On: true})
		case 1, 2, 3, 4, 5, 6:
			b.step(Event{Kind: Pause})
		case 7:
			b.load = Reading{Order: b.load.Order + 1, Load: limits.Load{Waiting: 9}}
		case 8, 9, 10, 11, 12:
			b.load = Reading{Order: b.load.Order + 1}
		case 13: // the process stands still
			b.now = b.now.Add(2 * time.Second)
		case 14:
			if b.rnd.IntN(2) == 0 {
				stop = true
				b.step(Event{Kind: Stop})
				b.step(Event{Kind: FeedEnded})
			}
		}
		if !b.wake.IsZero() && !b.wake.After(b.now) {
			b.step(Event{Kind: Tick})
		}
	}
	if r := b.build; r != nil {
		b.step(Event{Kind: Built, Row: r, Message: Message{Body: []byte("x")}})
	}
	if left := b.d.weight + b.d.bytes + len(b.flying); b.fault == nil && left > 0 {
		return fmt.Errorf("%d bytes of rows, %d of messages, %d requests are left", b.d.weight, b.d.bytes, len(b.flying))
	}
	return b.fault
}
