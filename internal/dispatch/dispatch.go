// Package dispatch decides which request goes when. It is the whole of a replay's state between a row that was read and the
// end of its request: open and closed loops, sessions, what is held back, dropped, built and sent.
//
// A Dispatcher is a plain state machine. Step is told what has happened and when, and says what is to be done. It has no lock,
// reads no clock, waits for nobody and calls nobody: the same events give the same actions.
//
// Where to find what:
//
//	step.go     what happens at an event, in which order
//	admit.go    may this row go now? Pause, guard, budget, lane, message, in this order
//	open.go     rows come due at their instants
//	closed.go   rows come due when a lane is free
//	session.go  the turns of a conversation go one after the other
//	line.go     what may be sent waits for a lane
//	build.go    whose message is built next, within a bound of bytes
//	rejoin.go   the process stood still, or the clock was set
//	drop.go     how a row ends that is not sent
//	end.go      the plan's end, handing over, stop
package dispatch

import (
	"time"

	"replayd/internal/limits"
)

// Config is what a Dispatcher is made by.
type Config struct {
	Lanes       int           // most requests in flight
	Closed      bool          // a row comes due when a lane is free, and not at an instant
	HoldLanes   bool          // in a closed loop a conversation keeps its lane while a delay between its turns runs
	DropLate    bool          // a row that finds no free lane at its instant is dropped at once
	MaxWait     time.Duration // longest wait for a lane; 0: without limit
	Carry       bool          // turns hold what the server answered to those before
	Ahead       int           // bytes of messages built and not yet sent
	FollowsWall bool          // the plan's instants are the wall clock's, also when that is set
	Paused      bool          // begins paused
	HoldReader  bool          // beyond the bound on waiting rows the plan is read no further; else what comes due is dropped

	Breaker  *limits.Breaker // nil: no guard
	Budget   limits.Budget
	Spending *limits.Spending // what the workload has spent; nil without a budget
	Waiting  *Waiting         // shared by all workloads of a process; nil: no bound
	Slots    *Slots           // shared with the dispatchers that this one takes over from and those that take over from it
}

// Slots count the requests of a workload that are in flight or about to go, over all reloads: a closed loop that takes over
// leaves as many lanes idle as the ones before it still use.
type Slots struct{ taken int }

// A Dispatcher holds every row between the plan and the end of its request. Make it with New. Whoever uses it holds one lock
// for it, and for all that share its Slots, Spending and Breaker.
type Dispatcher struct {
	Config
	lists
	messages
	missed
	ending
	closed  *circuit // nil: an open loop
	loops   map[int64]*Loop
	playing *Loop        // of the row that came due last; nil before the first loop
	played  time.Time    // planned, just after the last row that came due
	free    int          // lanes that would take a row now
	flying  int          // rows that lanes have
	wakes   time.Time    // the last WakeAt
	crowded limits.Spell // in which rows were dropped because too much waits
	paused  bool         // what falls due is dropped; of a closed loop nothing falls due
	judged  uint64       // order of the latest reading that the guard was judged by
	out     []Action     // of the running Step
	sends   bool         // one of them is Send
}

// New makes a dispatcher of nothing.
func New(c Config) *Dispatcher {
	d := &Dispatcher{Config: c, loops: map[int64]*Loop{}, free: c.Lanes, paused: c.Paused}
	if d.Slots == nil {
		d.Slots = new(Slots)
	}
	if c.Closed {
		d.MaxWait = 0 // nothing waits for a lane
		d.closed = &circuit{pool: 2*c.Lanes + 16}
	}
	return d
}

// do adds an action to those of the running Step.
func (d *Dispatcher) do(a Action) { d.out = append(d.out, a) }

// lists are where rows stand.
type lists struct {
	upcoming fifo  // in order of due; of a closed loop in its order, without turns that wait for an earlier one
	called   fifo  // of a closed loop: turns whose time has come, before new conversations
	delayed  turns // turns whose delay or gap runs
	waiting  fifo  // in order of ready
	weight   int   // bytes that rows which have not come due take
}

// messages are the messages that are to be built, ahead of their instants and within a bound of bytes.
type messages struct {
	unbuilt fifo // rows whose messages are to be built, in plan order
	behind  fifo // the same for turns that wait for an earlier one
	builder *Row // the one whose message is being built; nil: the builder is free
	bytes   int  // of messages built and not yet sent, as they were reserved
}

// missed is what is known of times in which this process did not run.
type missed struct {
	rejoined time.Time     // what fell due until this instant is missed
	held     time.Time     // the reader was held back until this instant: what it read late is not missed
	lag      time.Duration // how far behind it was when that was found out, until it is told; 0: nothing is to be told
}

// ending is how a plan ends.
type ending struct {
	ends      time.Time // nothing comes due from this instant on; zero: for ever
	until     time.Time // planned instant from which on rows are another dispatcher's; zero: none are
	retiresAt time.Time // the same by this process' own clock when it was told: what holds where the plan does not follow the wall clock
	exhausted bool      // nothing comes due any more, by ends
	astray    bool      // the plan is to be entered anew where the clock is
	fed       bool      // no more rows will be read
	stopped   bool      // nothing new is sent
	done      bool      // nothing is left and nothing will come
	unsettled bool      // a loop may be over
}

// A circuit is what a dispatcher knows more of a closed loop, whose rows have no instants of their own: one comes due each time
// that a lane is free, first the turn of a conversation that goes on, then the next row of the plan. So no request waits
// for a lane, and none is overloaded or missed: while lanes are held back by a pause, a guard, a spent budget or a process
// that is stopped, nothing comes due. The rows wait.
type circuit struct {
	pool    int         // most rows at hand, without turns that wait for an earlier one
	opens   time.Time   // nothing comes due before
	fired   time.Time   // the instant of the last Step
	again   time.Time   // when to look again for what may not go out now; zero: an event will tell
	resting []time.Time // when lanes are free again whose requests could not connect
}
