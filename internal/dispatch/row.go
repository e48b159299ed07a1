package dispatch

import (
	"time"

	"replayd/internal/limits"
	"replayd/internal/measure"
	"replayd/internal/schedule"
)

// A Row is one row of the plan until its request has ended: read, due, waiting, in flight. The reader of the plan sets the first block of
// fields.
type Row struct {
	ID       string       // X-Request-Id: workload/loop/row, and the pass from the second pass on
	Due      schedule.Due // At is on the monotonic clock after the row was read, and the due instant after it came due
	Seq      int64        // position in the plan; breaks ties
	Weight   int          // bytes of the row in memory
	Size     int          // estimated bytes of the message, without answers to earlier turns
	Filtered bool         // over the length limits, or asks for several choices: it is counted at its instant, not sent
	Clipped  bool         // the row was cut to the length limits
	Cancel   bool         // the request will be cancelled
	Light    bool         // what the row sends is read again when its message is built
	Message  Message

	Planned time.Time     // planned instant on the monotonic clock; in a closed loop the instant at which the row came due
	Offset  time.Duration // Planned − start of the loop
	Ready   time.Time     // max(due, end of the session wait)
	Waited  bool          // no lane was free when the row became ready
	Answers [][]byte      // answers to the earlier turns, with History; never changed in place

	entry
}

// An entry is the dispatcher's own state of a row. Its caller's lock guards it.
type entry struct {
	Reserved int          // bytes reserved for the message within the bound on messages
	Moved    bool         // another replica answered the row than the answer of its session that ended before
	Echo     measure.Echo // what became of the token of the row's answer

	calledAt  time.Time // closed loop: when the row's parents allowed it
	loop      *Loop
	session   *session    // nil: the row is part of no session
	turn      *turn       // its own in the session
	charged   time.Time   // when the budget was charged; zero: not charged
	cost      limits.Cost // the charge
	state     state
	expected  bool         // the row has come due
	counted   bool         // Waiting includes the row
	follows   bool         // an earlier row that it comes after was open when the row was read
	admitted  bool         // the row has no session and takes a place of Config.Sessions
	late      bool         // the message cannot be built before the parents have ended
	building  bool         // the builder works on the message
	trial     bool         // the trial of a half-open guard
	links     [chains]link // its places in lists
	heap      *rowHeap     // that it is in; nil: none
	heapIndex int          // in the heap
	order     int          // in which it began to wait for a lane
}

// Loop returns the loop of the row.
func (r *Row) Loop() *Loop { return r.loop }

// SessionLost returns the due instant of the first row of the session that failed or was dropped; zero: none has.
func (r *Row) SessionLost() time.Time {
	if r.session == nil {
		return time.Time{}
	}
	return r.session.lost
}

// InSession reports whether the row is a turn of a conversation.
func (r *Row) InSession() bool { return r.session != nil }

// A Message is an HTTP request as bytes, with the token counts found while it was built.
type Message struct {
	Body    []byte // nil before the message is built and after it was sent
	Cut     int    // tokens of the chat template that were subtracted from the prompt
	Counted int    // tokens of the row's own text, by a tokenizer
	Err     error  // why the message could not be built
	Form    uint64 // see openai.Client.Form
}

type state uint8

const (
	upcoming state = iota // not due yet
	blocked               // due, or a turn of a closed loop, but a parent has not ended
	delayed               // in the wait or gap after its parents
	called                // a turn of a closed loop that takes the next free lane
	waiting               // waits for a lane or for its message
	flying                // in flight
	gone                  // finished or dropped
)

// A Loop is one pass over the trace, kept until its last request has ended.
type Loop struct {
	schedule.Loop
	Salt   time.Time     // Start, but where it is to have the texts of a warm-up; never changed once there are rows
	Period time.Duration // from the start of the loop to the start of the next

	undue        list      // blocked and delayed rows that are not due yet
	ends         time.Time // nothing of the loop comes due from this instant on; zero: no end
	clock        Clock     // maps its instants to the monotonic clock
	sessions     map[sessionKey]*session
	idle         []idleSession // sessions without open turns, by the time since their last turn, longest first
	idleBytes    int           // bytes of the answers of idle sessions
	tokens       int           // bytes of the tokens of all sessions
	open         int           // rows that are not finished or dropped
	read         bool          // all rows were read
	endsReported bool          // the ends of its idle sessions were reported then
	joined       bool          // it was entered after its start
	played       bool          // a row of it came due
	cut          bool          // some rows were not played: the loop does not count as completed
}

// Clock maps the loop's planned instants to the monotonic clock.
func (l *Loop) Clock() Clock { return l.clock }

// Over reports whether all rows of the loop were read and none is left.
func (l *Loop) Over() bool { return l.read && l.open == 0 }
