package replay

import (
	"container/heap"
	"time"

	"replayd/internal/limits"
	"replayd/internal/measure"
)

// A circuit is what a queue knows more of a closed plan, whose rows have no instants of their own: one comes due each time
// that a lane is free, first the turn of a conversation that goes on, then the next row of the plan. So no request waits
// for a lane, and none is overloaded or missed: while lanes are held back by a pause, a guard, a spent budget or a process
// that is stopped, nothing comes due. The rows wait.
type circuit struct {
	hold    bool        // a lane stays with its conversation while a delay runs
	pool    int         // most rows at hand, without turns that wait for an earlier one
	want    func()      // hears that half of them are gone
	opens   time.Time   // nothing comes due before
	fired   time.Time   // when fire was called last
	again   time.Time   // when to look again for what may not go out now; zero: somebody will tell
	resting []time.Time // when lanes are free again whose requests could not connect
	full    func() bool // all lanes are taken, some by the runner before; nil: there was none
	until   time.Time   // nothing comes due from this instant on: it is another runner's; zero: for ever
}

const (
	// lookAgain is how soon a closed loop tries again what a guard's trial or a budget did not let through.
	lookAgain = time.Second

	// restFor is how long a lane rests whose request could not connect. A refusal takes microseconds: without a rest a
	// server that is down would be dialled as fast as this machine can.
	restFor = time.Second
)

// close makes it the queue of a closed plan.
func (q *queue) close(pool int, want func()) {
	q.closed = &circuit{pool: pool, want: want}
	q.maxWait = 0      // nothing waits for a lane
	q.waiting.near = 0 // but for its message
}

// poolOf is how many rows are kept at hand for so many lanes: the next one of each, and some for rows that end at once.
func poolOf(lanes int) int { return 2*lanes + 16 }

// poolBytes bounds what the rows at hand may take, together with the turns that wait for an earlier one: of long
// conversations as many are read as are needed to keep all lanes busy, unless that is too much.
const poolBytes = 256 << 20

// full says whether the plan is to be read no further for now.
func (q *queue) full() bool { return q.upcoming.len() >= q.closed.pool || q.weight >= poolBytes }

// join puts a row of a closed plan in its place: behind the turn before it, or among those that a lane may take.
func (q *queue) join(it *item) {
	it.ready = time.Time{} // the instants of a plan that is warmed up for are not those of its turns here
	s := it.session
	if s == nil || !it.follows || s.over != "" {
		q.upcoming.push(it)
		q.building.push(it)
		return
	}
	it.state = blocked
	if s.busy && s.first() == it {
		q.prebuild(it)
	}
}

// prebuild has the message of a conversation's next turn built while the one before is on its way.
func (q *queue) prebuild(it *item) {
	if !it.late {
		q.behind.push(it)
	}
}

// nextClosed tells of the instants at which fireClosed has something to do.
func (q *queue) nextClosed(earlier func(time.Time)) {
	c := q.closed
	if c.opens.After(c.fired) {
		earlier(c.opens)
	}
	if !c.again.IsZero() {
		earlier(c.again)
	}
	if len(c.resting) > 0 {
		earlier(c.resting[0])
	}
}

func (q *queue) fireClosed(now time.Time) {
	c := q.closed
	c.fired = now
	for len(c.resting) > 0 && !c.resting[0].After(now) {
		c.resting = c.resting[1:]
		q.free++
	}
	for turn := q.delayed.front(); turn != nil && !turn.ready.After(now); turn = q.delayed.front() {
		heap.Pop(&q.delayed)
		turn.state = called
		q.called.push(turn)
	}
	q.draw(now)
}

// freed takes note that a lane has ended its request.
func (q *queue) freed(now time.Time, o measure.Outcome) {
	q.free++
	if q.closed != nil && (o == measure.ConnectFailed || o == measure.TimeoutConnect) {
		q.rest(now)
	}
}

// rest takes a free lane of a closed loop out of use for a while.
func (q *queue) rest(now time.Time) {
	q.free--
	q.closed.resting = append(q.closed.resting, now.Add(restFor))
}

// tryAgain looks for a permission to send a trial soon, where one may be had: a trial in flight must end, or its second be
// over. Of everything else that the guard holds back judge tells.
func (q *queue) tryAgain(now time.Time) {
	if q.guard.State() == limits.HalfOpen {
		q.closed.again = now.Add(lookAgain)
	}
}

// draw lets a row come due for each lane that is free and has none yet.
func (q *queue) draw(now time.Time) {
	c := q.closed
	c.again = time.Time{}
	defer func() {
		if q.upcoming.len() <= c.pool/2 {
			c.want()
		}
	}()
	for q.free > q.waiting.len() && !q.paused && !now.Before(c.opens) && !q.over(now) &&
		(c.until.IsZero() || now.Before(c.until)) && (c.full == nil || !c.full()) {
		list := &q.called
		if list.len() == 0 {
			if q.closed.hold && q.free <= q.waiting.len()+len(q.delayed) {
				return // the rest are those of conversations that pause
			}
			list = &q.upcoming
		}
		it := list.front()
		if it == nil {
			return
		}
		s := it.session
		switch {
		case it.filtered:
			list.pop()
			q.filter(it)
			continue
		case s != nil && s.over != "":
			list.pop()
			q.giveUp(it, s.over)
			continue
		case s != nil && s.soonest(it).After(now): // it was read when the turn before had long ended
			list.pop()
			q.release(it, now)
			continue
		case q.guard.State() == limits.HalfOpen && q.waiting.len() > 0: // the first of those that wait is the next trial
			return
		case q.guard.Refuses(now):
			q.tryAgain(now)
			return
		case q.purse.large(it):
			list.pop()
			q.giveUp(it, measure.Budget)
			q.endTurn(it, measure.Budget, now)
			c.opens = now.Add(lookAgain) // where all rows are like this one, they are not gone in no time
			return
		case !q.purse.pay(it, now):
			c.again = now.Add(lookAgain)
			return
		}
		list.pop()
		q.comeUp(it, now)
	}
}

// comeUp lets a row of a closed plan come due.
func (q *queue) comeUp(it *item, now time.Time) {
	q.current = it.loop
	it.dueNow(now)
	q.expect(it)
	if s := it.session; s != nil {
		if s.first() == it {
			s.turns = s.turns[1:]
		}
		s.busy, s.due = true, now
		if turn := s.first(); turn != nil {
			q.prebuild(turn)
		}
	}
	it.state = waiting
	q.waiting.push(it)
}

// dueNow lets a row have the instant at which it came due for the plan's.
func (it *item) dueNow(now time.Time) {
	it.offset += now.Sub(it.planned)
	it.planned, it.due.At, it.ready = now, now, now
}

// takeClosed is take of a closed plan: a row that has come due waits for its message only, or for the end of a pause or of a
// guard that came between. While single trials go through, the first waiting row is the trial, whichever row that is: one
// that waits already may hold the bytes that the message of a later one would need.
func (q *queue) takeClosed(now time.Time) *item {
	for {
		q.draw(now)
		h := q.guard.State()
		if q.paused || h != limits.Closed {
			q.hold()
		} else {
			q.resume(now)
		}
		if q.waiting.len() == 0 || q.paused {
			return nil
		}
		if q.guard.Refuses(now) {
			q.tryAgain(now)
			return nil
		}
		it := q.takeBuilt()
		switch {
		case it == nil:
			return nil
		case it.err != nil:
			q.refuse(it, now)
			q.rest(now)
			continue
		case it.held: // it is the trial
			it.held = false
			it.dueNow(now)
		}
		q.admit(it, now) // it does: nothing has happened since refuses
		q.fly(it)
		return it
	}
}

// hold notes that the rows which wait are held back: their turn comes again.
func (q *queue) hold() {
	for _, it := range q.waiting.items[q.waiting.head:] {
		it.held = true
	}
}

// resume lets the rows that were held back come due anew.
func (q *queue) resume(now time.Time) {
	for _, it := range q.waiting.items[q.waiting.head:] {
		if it.held {
			it.held = false
			it.dueNow(now)
		}
	}
}
