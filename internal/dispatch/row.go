package dispatch

import (
	"time"

	"replayd/internal/limits"
	"replayd/internal/schedule"
)

// A Row is one row of the plan on its way: read, due, waiting, in flight. Who reads the plan sets the first block.
type Row struct {
	ID       string       // X-Request-Id: workload/loop/row, and the pass where that is not the first
	Due      schedule.Due // At is on the monotonic clock once the row was read, and the due instant once that has come
	Seq      int64        // order of the plan, breaks ties
	Weight   int          // bytes that the row itself takes
	Size     int          // bytes that its message takes, about, without answers
	Filtered bool         // it is too long, and only counted at its instant
	Clipped  bool         // it was too long, and cut
	Cancel   bool         // its answer is to be cancelled
	Message  Message

	Planned time.Time     // the plan's instant, on the monotonic clock; of a closed loop's row that at which it came due
	Offset  time.Duration // of Planned, since the loop's start
	Ready   time.Time     // max(due, end of the session wait)
	Waited  bool          // no lane was free when it became ready
	Answers [][]byte      // to the session's earlier turns, where they are carried; never changed in place

	loop     *Loop
	session  *session    // nil for a row of no session
	charged  time.Time   // when it was charged to the budget; zero: it was not
	cost     limits.Cost // that was charged
	reserved int         // bytes of the bound on messages
	state    state
	expected bool // its due instant has come
	counted  bool // it is among the rows that Waiting bounds
	follows  bool // an earlier turn of its session was still open when it was planned
	late     bool // its message cannot be built before the turn before has ended
	building bool // the builder is at it
	trial    bool // it was let through to see whether the target has recovered
	held     bool // it came due in a closed loop, which then was paused or guarded
}

// Loop is the pass over the trace that it is a row of.
func (r *Row) Loop() *Loop { return r.loop }

// Reserved is how many bytes its message may take, as they were reserved for it.
func (r *Row) Reserved() int { return r.reserved }

// InSession says whether it is a turn of a conversation.
func (r *Row) InSession() bool { return r.session != nil }

// A Message is an HTTP request as bytes, with the token counts of its building.
type Message struct {
	Body    []byte // nil until built and after it was sent
	Cut     int    // template tokens taken off the prompt
	Counted int    // tokens of the row's own text, by a tokenizer
	Err     error  // it could not be built
}

// A state says in which list a row stands.
type state uint8

const (
	upcoming state = iota // its instant has not come
	blocked               // due, or a turn of a closed loop, but the turn before has not ended
	delayed               // the turn before ended, its delay or gap runs
	called                // a turn of a closed loop that goes with the next free lane
	waiting               // may be sent, waits for a lane or for its message
	flying                // a lane has it
	gone                  // finished or dropped
)

// A Loop is one pass over the trace, kept until its last request has ended.
type Loop struct {
	schedule.Loop
	Salt   time.Time     // Start, but where it is to have the texts of a warm-up; never changed once there are rows
	Period time.Duration // from its start to the next one's

	clock    Clock // maps its instants to the monotonic clock
	sessions map[sessionKey]*session
	resting  []rest // sessions without open turns, the one longest at rest first
	atRest   int    // bytes of their answers
	open     int    // rows not gone
	read     bool   // no more rows will come
	cut      bool   // not all of its rows came: it does not count as completed
}

// Clock lays the loop's planned instants on the monotonic clock.
func (l *Loop) Clock() Clock { return l.clock }

// Over says whether all its rows were read and none is left.
func (l *Loop) Over() bool { return l.read && l.open == 0 }
