package dispatch

import (
	"time"

	"replayd/internal/limits"
	"replayd/internal/measure"
	"replayd/internal/schedule"
)

// A Kind is the kind of an event.
type Kind uint8

// Events, and which fields of Event they have.
const (
	Tick Kind = iota // the instant of the last WakeAt has come, or a slot of another dispatcher is free
	Poll             // the clocks and the engine's load were read, and nothing else has happened
	// Plan, Period, Salt: rows of a loop will be read, those planned for At or later. On: it follows the loop before.
	LoopBegun
	RowRead    // Loop, Row
	LoopRead   // Loop: it has no more rows
	FeedEnded  // Failed: no more rows will be read, because of an error or a stop or because the plan is over
	ReaderHeld // the reader waits at the bound of Waiting
	LetGo      // rows that have not come due are forgotten, and the plan is entered anew where the clock is
	Built      // Row, Message
	Written    // Row: its message was written
	Refused    // Row, Message.Err: it was to be sent, and cannot be written
	Lacked     // Row: its lane could not send it, for want of a resource of this process
	Ended      // Row, Outcome, Usage, Text, Token, Replica, Write, First, At: the end of its answer
	BothEnded  // Row, At: with Coupled: when the row has ended on both sides
	Pause      // On
	// At: from when on rows are another dispatcher's. A planned instant where the plan follows the wall clock, else one of
	// the monotonic clock.
	Retire
	// At: the planned instant at which the plan begins. Period: nothing comes due later than so long after it; 0: no
	// limit.
	Bounds
	Stop // nothing new is sent
)

// An Event is something that has happened.
type Event struct {
	Kind    Kind
	On      bool
	Failed  bool
	Row     *Row
	Loop    *Loop
	Plan    schedule.Loop
	Period  time.Duration
	Salt    time.Time // from when the texts of the loop have their salt; zero: from its start
	At      time.Time
	Write   time.Time // of the first byte; zero: nothing was written
	First   time.Time // first content of a streamed answer; zero: none came
	Message Message
	Outcome measure.Outcome
	Usage   measure.Usage
	Text    []byte       // of the answer, where it is carried: nil where it says nothing, or was too long
	Token   []byte       // that the answer wants back from later requests of the session; empty: none, and none any more if Echo is EchoKept
	Echo    measure.Echo // of the header that Token is from
	Replica string       // that answered; "": not known

	Seen Reading // of every event: the load for the guard
}

// A Reading is the engine's load in the latest scrape.
type Reading struct {
	Order uint64 // from 1 in the order of reading; 0: the load was not read
	Load  limits.Load
	Err   error
}

// A Verb is the kind of an action.
type Verb uint8

// Actions, and which fields of Action they have.
const (
	Send Verb = iota // Row: to a free lane; at Ended that lane first
	// Row: its message. One at a time, the next after Built; never with Send, but at the Poll after it.
	Build
	Expect       // Row: it has come due
	Filter       // Row: it has come due, and is not part of the replay
	Drop         // Row, Reason: it had come due and is not sent
	Release      // Row: its message buffer is free
	SideEnded    // Row, At: with Coupled: the row of a session has ended here; At is zero where no row comes after it here
	SessionBegun // Row: the first of its session that has come due
	SessionEnded // Session
	LoopEntered  // Loop
	LoopDone     // Loop: no row of it is left. On: it was played whole
	GuardMoved   // a limit of the guard has opened or closed
	GuardLacks   // the engine does not show a figure that a limit of the guard needs
	BudgetSpell  // Spell, Bound: the budget begins to refuse requests, or Bound is "": that is over
	TooLarge     // Row: it alone is more than the whole budget
	Crowded      // On, Spell: rows begin to be dropped at the bound of Waiting, or no longer are
	Slowed       // Row: many requests before it failed in the same way, and the closed loop slows down
	Rejoined     // Why, Lag: rows are missed, or the plan is entered anew
	ReadOn       // the feed is to look again whether there is room
	Retired      // the instant of Retire has come: what is left is requests in flight, and turns of sessions in progress
	Done         // nothing is left and nothing will come
	WakeAt       // At: when Step is to be called without any event; zero: never
)

// An Action is something to be done.
type Action struct {
	Kind    Verb
	On      bool
	Row     *Row
	Loop    *Loop
	Session *measure.Session
	Reason  measure.DropReason
	Why     Rejoin
	Lag     time.Duration
	Spell   limits.Spell
	Bound   limits.Bound
	At      time.Time
}

// A Rejoin says why a replay joins its plan anew.
type Rejoin uint8

// Reasons to rejoin.
const (
	Stopped    Rejoin = iota // this process was not running for a while: rows due until now are missed
	Ahead                    // the wall clock is ahead: it was set, or the system slept; rows due until now are missed
	SetBack                  // the wall clock was set back: no row goes out twice
	SetFarBack               // it was by more than a loop: the plan is entered anew
	Postponed                // this process was not running when the plan was to begin: it begins now
)
