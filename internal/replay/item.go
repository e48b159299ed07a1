package replay

import (
	"time"

	"replayd/internal/schedule"
)

// An item is one row on its way: planned, due, waiting, handed to a lane.
type item struct {
	id       string       // X-Request-Id: workload/loop/row
	due      schedule.Due // At is on the monotonic clock once the queue has it
	ready    time.Time    // max(planned instant, end of the session wait)
	charged  time.Time    // when its cost was taken from the budget; zero: it was not
	cost     cost         // what was taken then
	session  *session     // nil for a row of no session
	loop     *loop
	state    state
	waited   bool   // no lane was free when it became ready
	body     []byte // the whole HTTP message; nil until built and after it was sent
	size     int    // bytes reserved for body
	seq      int64  // order of the plan, breaks ties
	follows  bool   // an earlier turn of its session was still open when it was planned
	cut      int    // template tokens taken off the prompt
	err      error  // the message could not be built
	building bool   // the builder is at it
	trial    bool   // it was let through to see whether the target has recovered
	filtered bool   // it is too long, and only counted at its instant
}

// A state says in which list of the queue an item stands.
type state uint8

const (
	upcoming state = iota // its instant has not come
	blocked               // due, but the turn before has not ended
	delayed               // the turn before ended, its delay runs
	waiting               // may be sent, waits for a lane or for its body
	flying                // a lane has it
	gone                  // finished or dropped
)

// A loop is one pass over the trace, kept until its last request has ended.
type loop struct {
	schedule.Loop
	clock    clock         // what its instants were laid on the monotonic clock by
	period   time.Duration // from its start to the next one's
	sessions map[string]*session
	open     int  // items not gone
	read     bool // no more rows will come
	cut      bool // not all of its rows came: it does not count as completed
}

// A session is a conversation in one loop: its turns go out one after the other.
type session struct {
	open   int  // turns not gone
	busy   bool // a turn is waiting or flying
	failed bool
	ended  time.Time // end of the last turn; zero before the first
	turns  []*item   // blocked ones, in order
}
