package replay

import (
	"time"

	"replayd/internal/limits"
	"replayd/internal/schedule"
)

// An item is one row on its way: planned, due, waiting, handed to a lane.
type item struct {
	id       string        // X-Request-Id: workload/loop/row, and the pass where that is not the first
	due      schedule.Due  // At is on the monotonic clock once the queue has it, and the due instant once that has come
	planned  time.Time     // the plan's instant, on the monotonic clock; of a closed loop's row that at which it came due
	offset   time.Duration // of planned, since the loop's start
	ready    time.Time     // max(due, end of the session wait)
	charged  time.Time     // when its cost was taken from the budget; zero: it was not
	cost     limits.Cost   // what was taken then
	session  *session      // nil for a row of no session
	loop     *loop
	state    state
	waited   bool     // no lane was free when it became ready
	body     []byte   // the whole HTTP message; nil until built and after it was sent
	answers  [][]byte // what the session's earlier turns were answered, where they are carried; never changed in place
	size     int      // bytes reserved for body
	weight   int      // bytes that the row itself takes
	seq      int64    // order of the plan, breaks ties
	counted  int      // tokens of its own text by a tokenizer
	cut      int      // template tokens taken off the prompt
	err      error    // the message could not be built
	expected bool     // its due instant has come
	follows  bool     // an earlier turn of its session was still open when it was planned
	late     bool     // its message cannot be built before the turn before has ended
	building bool     // the builder is at it
	trial    bool     // it was let through to see whether the target has recovered
	held     bool     // it came due in a closed loop, which then was paused or guarded
	filtered bool     // it is too long, and only counted at its instant
	clipped  bool     // it was too long, and cut
	cancel   bool     // its answer is to be cancelled
}

// A state says in which list of the queue an item stands.
type state uint8

const (
	upcoming state = iota // its instant has not come
	blocked               // due, or a turn of a closed loop, but the turn before has not ended
	delayed               // the turn before ended, its delay or gap runs
	called                // a turn of a closed loop that goes with the next free lane
	waiting               // may be sent, waits for a lane or for its body
	flying                // a lane has it
	gone                  // finished or dropped
	replaced              // it waits, parked: this item is used no more
)

// A loop is one pass over the trace, kept until its last request has ended.
type loop struct {
	schedule.Loop
	clock    clock         // what its instants were laid on the monotonic clock by
	salt     time.Time     // Start, but where it is to have the texts of a warm-up; never changed once there are items
	period   time.Duration // from its start to the next one's
	sessions map[sessionKey]*session
	resting  []rest // sessions without open turns, the one longest at rest first
	atRest   int    // bytes of their answers
	open     int    // items not gone
	rows     int    // read so far; the feed's
	passes   int64  // of the last of them; the feed's
	read     bool   // no more rows will come
	cut      bool   // not all of its rows came: it does not count as completed
}
