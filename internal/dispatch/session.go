package dispatch

import (
	"slices"
	"time"

	"replayd/internal/measure"
)

// A session is a conversation in one pass of a loop. Its rows are a graph: each comes after its parents. A row that names no parents
// comes after the row of the session that was read before it.
type session struct {
	key   sessionKey
	loop  *Loop
	open  int           // rows that are not finished or dropped
	due   time.Time     // due instant of the latest row that became ready; zero before the first
	rows  list          // rows that have not ended, in the order of reading; not kept once turns is
	last  *turn         // of the row read last; nil: there is none
	row   int           // its Record.Number
	turns map[int]*turn // by Record.Number; nil: no row names its parents
	bytes int           // of answers and turns that are kept for later rows
	idles int           // how often it came to have no open rows
	affinity

	opened        bool                // its first row was read
	whole         bool                // its last row was read
	begun         time.Time           // due instant of the first row that came due; zero: none has
	path          measure.SessionPath // to the end of the latest request
	requests      int                 // that have ended
	prompt        int                 // tokens of ok requests
	cached        int                 // likewise, as far as the server reported
	cacheReported bool                // an answer had a number of cached tokens; some servers report it only above 0
	failed        bool                // a row failed, or was dropped for a reason that counts against the service
	cut           bool                // a row was dropped for another reason, aborted or forgotten
	lost          time.Time           // due instant of the first row that failed or was dropped; zero: none has
	admitted      bool                // it takes a place of Config.Sessions
	over          bool                // it has ended
}

// A turn holds the state of a row that the rows after it need.
type turn struct {
	pending int       // parents that have not ended, or were dropped before their own parents ended
	apart   int       // those of them that wait for parents of their own
	after   time.Time // the latest end of a parent, with the wait after it; zero: none has ended

	path measure.SessionPath // to the end of the parent that the row waited for last; once its request has ended, to that end

	next     []follower         // rows that come after it, until its fate is known
	ended    time.Time          // end of the answer; zero: it has not ended, or was never sent
	over     measure.DropReason // why the rows after it are dropped; "": they are sent
	gone     bool               // the row is finished or dropped
	lost     bool               // the end of the loop came before the row was due: the rows after it are not due either
	coupled  bool               // the row has ended here, and the other side is waited for
	released bool               // the parents of the row have ended

	before  *turn    // of the first parent, until the row has an answer; nil: none. Only with History
	answers [][]byte // to the rows up to this one, nil for an empty one; only with History
	forked  bool     // a row after it has appended to answers
}

// A follower is a row that waits for a parent.
type follower struct {
	row  *Row
	wait time.Duration // from the end of the parent
}

// A sessionKey identifies a conversation within a loop.
type sessionKey struct {
	name string
	pass int64
}

// An idleSession is a session as it stood when it came to have no open rows.
type idleSession struct {
	of    *session
	times int // of.idles then
}

// How much is kept of a loop's sessions without open rows; those idle for longest are forgotten first. A row that comes
// all the same, behind as many other conversations, begins a session anew.
const (
	maxIdleSessions = 1 << 16
	maxIdleBytes    = 64 << 20 // of answers and turns
	turnBytes       = 272      // of a turn in a map
)

// namesParents reports whether the row's trace says which rows it comes after.
func (r *Row) namesParents() bool { return r.Due.After != nil }

// enroll adds a row to its session, behind its parents. Only an earlier row that was read before it can be a parent, so there is no
// cycle. A parent that is not known was not part of the replay, or its session was forgotten: it has ended at its instant.
func (d *Dispatcher) enroll(r *Row) {
	if r.Due.Session == "" {
		return
	}
	key := sessionKey{r.Due.Session, r.Due.Pass}
	s := r.loop.sessions[key]
	if s != nil && s.over { // the loop was entered again: this is another session, with rows of the same name
		d.complete(s)
		s = nil
	}
	filtered := r.Filtered && !r.namesParents() // no row comes after it
	if s == nil && filtered && (!r.Due.First || r.Due.Last) {
		return
	}
	if s == nil {
		s = &session{key: key, loop: r.loop, rows: list{chain: ofSession}}
		r.loop.sessions[key] = s
	}
	s.opened = s.opened || r.Due.First
	if filtered {
		switch {
		case r.Due.Last:
			d.complete(s)
		case s.idles == 0 && s.open == 0: // its first row
			d.markIdle(s)
		}
		return
	}
	if s.open == 0 && s.idles > 0 {
		r.loop.idleBytes -= s.bytes
	}
	s.whole = s.whole || r.Due.Last
	r.session, r.turn = s, new(turn)
	switch {
	case r.namesParents():
		d.indexRows(s)
		for _, e := range r.Due.After {
			d.visits++
			if e.Row < r.Due.Number {
				d.follow(r, s.turns[e.Row], e.Wait)
			}
		}
	default:
		d.follow(r, s.last, r.Due.Delay)
	}
	r.follows = r.turn.pending > 0
	r.late = r.follows && d.History
	s.open++
	s.last, s.row = r.turn, r.Due.Number
	if s.turns == nil {
		s.rows.push(r)
	} else {
		s.index(s.row, s.last)
	}
}

// indexRows makes the turns of a session known when the first row comes that names its parents: those of the open rows, and the last one.
func (d *Dispatcher) indexRows(s *session) {
	if s.turns != nil {
		return
	}
	s.turns = map[int]*turn{}
	for r := s.rows.pop(); r != nil; r = s.rows.pop() {
		d.visits++
		s.index(r.Due.Number, r.turn)
	}
	if s.last != nil && s.turns[s.row] == nil {
		s.index(s.row, s.last)
	}
}

// index makes a turn known by its row's number.
func (s *session) index(row int, t *turn) {
	s.turns[row] = t
	s.bytes += turnBytes
}

// follow makes a row wait for a parent. The answers before the row are those of its first parent and of that one's.
func (d *Dispatcher) follow(r *Row, parent *turn, wait time.Duration) {
	if parent == nil {
		return
	}
	if d.History && r.turn.before == nil {
		r.turn.before = parent
	}
	if r.turn.over == "" {
		r.turn.over = parent.over
	}
	r.turn.lost = r.turn.lost || parent.lost
	switch {
	case !parent.gone || parent.coupled || parent.pending > 0:
		parent.next = append(parent.next, follower{r, wait})
		r.turn.pending++
		if !parent.released {
			r.turn.apart++
		}
	case !parent.ended.IsZero():
		r.turn.bind(parent, wait)
	}
}

// bind notes that a parent has ended. The row waits for that parent last whose end with the wait after it is the latest.
func (t *turn) bind(parent *turn, wait time.Duration) {
	if at := parent.ended.Add(wait); at.After(t.after) {
		t.after, t.path = at, parent.path
	}
}

// freeNext marks a row that no parent holds any more.
func (d *Dispatcher) freeNext(t *turn) {
	if t.released {
		return
	}
	t.released = true
	for _, f := range t.next {
		d.visits++
		f.row.turn.apart--
	}
}

func (d *Dispatcher) part(r *Row) {
	s := r.session
	if s == nil {
		return
	}
	r.turn.gone = true
	r.unlink(ofSession)
	if s.open--; s.open == 0 {
		d.markIdle(s)
	}
}

// markIdle keeps a session without open rows for those that may follow, and forgets those idle for longest if they
// are too many.
func (d *Dispatcher) markIdle(s *session) {
	s.idles++
	l := s.loop
	l.idleBytes += s.bytes
	if s.whole {
		d.complete(s)
		return
	}
	if l.read {
		d.endSession(s)
	}
	l.idle = append(l.idle, idleSession{s, s.idles})
	for len(l.idle) > maxIdleSessions || l.idleBytes > maxIdleBytes || len(l.idle) > 0 && l.tokens > tokenBytes/2 {
		r := l.idle[0]
		l.idle[0] = idleSession{}
		l.idle = l.idle[1:]
		if r.of.open == 0 && r.of.idles == r.times && !r.of.whole {
			r.of.cut = true // rows of it may follow, as another session
			d.complete(r.of)
		}
	}
}

// complete ends a session that has no more rows, once none is open, and forgets it.
func (d *Dispatcher) complete(s *session) {
	s.whole = true
	if s.open == 0 {
		d.endSession(s)
		s.loop.idleBytes -= s.bytes
		s.loop.tokens -= len(s.token)
		delete(s.loop.sessions, s.key)
	}
}

// soonest returns when a row whose parents have ended may be sent: at its planned instant, its waits after their ends, its gap after the
// due instant of the row before, and its time after the session's begin, whichever is latest.
func (r *Row) soonest() time.Time {
	at, s := latest(r.Ready, r.turn.after), r.session
	if r.Due.Gap > 0 && !s.due.IsZero() {
		at = latest(at, s.due.Add(r.Due.Gap))
	}
	if r.Due.Since > 0 && !s.begun.IsZero() {
		at = latest(at, s.begun.Add(r.Due.Since))
	}
	return at
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// isLate says of a row that is due no sooner than its parents or its gap allow, whether that is later than planned.
func (r *Row) isLate() bool {
	s := r.session
	switch {
	case s == nil, !r.namesParents() && r.Due.Gap == 0:
		return false
	case r.Due.Since > 0 && !s.begun.IsZero() && s.begun.Add(r.Due.Since).After(r.Due.At):
		return true
	case r.turn.pending > 0, r.namesParents() && r.turn.after.After(r.Due.At):
		return true
	}
	return r.Due.Gap > 0 && !s.due.IsZero() && s.due.Add(r.Due.Gap).After(r.Due.At)
}

// over returns why a row cannot be sent any more: a parent of it failed, or was dropped for this reason. "": it can.
func (r *Row) over() measure.DropReason {
	if r.turn == nil {
		return ""
	}
	return r.turn.over
}

// carriedBytes bounds the answers kept for one conversation. Beyond it, later turns have the history of their own rows.
const carriedBytes = 16 << 20

// storeAnswer stores the answer to a row for the rows after it; a cancelled answer as far as it came. An empty or
// too long answer is not carried: the row's own text stays.
func (s *session) storeAnswer(t *turn, text []byte) {
	var answer []byte
	if len(text) > 0 && s.bytes+len(text) <= carriedBytes {
		answer = append(answer, text...)
	}
	s.bytes += len(answer)
	var answers [][]byte
	if earlier := t.earlier(); earlier != nil {
		if answers = earlier.answers; earlier.forked { // another row has appended to the array
			answers = slices.Clip(answers)
		}
		earlier.forked = true
	}
	answers = append(answers, answer)
	t.answers, t.before = answers, nil
}

// shorten skips a parent without an answer, once the row has ended: so no way to an answer is longer than two turns.
func (t *turn) shorten() {
	if b := t.before; t.answers == nil && b != nil && b.answers == nil {
		t.before = b.before
	}
}

// earlier returns the nearest turn before t that has answers; nil: there is none.
func (t *turn) earlier() *turn {
	t = t.before
	for t != nil && t.answers == nil {
		t = t.before
	}
	return t
}
