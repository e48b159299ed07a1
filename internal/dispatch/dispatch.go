// Package dispatch decides when each request is sent. It holds the state of a replay from a row that was read to the end of its
// request: open and closed loops, sessions, admission, drops, and the order in which messages are built.
//
// A Dispatcher is a state machine. Step takes an event and its instant and returns actions. It has no lock, reads no clock, blocks
// on nothing and has no callbacks: the same events give the same actions.
//
// The files:
//
//	step.go        the order of work in a Step
//	admit.go       admission: pause, guard, budget, lane, message
//	open_loop.go   open loop: rows come due at their instants
//	closed_loop.go closed loop: a row comes due when a lane is free
//	session.go     the rows of a session go after their parents
//	session_life.go begin and end of sessions, and how many are in progress
//	affinity.go    the replica and the router's token of a session
//	queue.go       rows that wait for a lane or for their parents
//	list.go        the rows by state: each change of state takes the same time, or that of a heap
//	waiting.go     the bound on the memory of waiting rows
//	build.go       the order in which messages are built, within a bound on bytes
//	guard.go       the guard, judged by readings of the engine's load
//	drop.go        rows that are not sent
//	clock_jump.go  the process was not running, or the wall clock was set
//	end.go         the end of the plan, retirement, stop
//	event.go       the events and the actions
//	row.go         the data of a row, a message and a loop
//	state.go       what the runner asks: is there room, what is played, is it done
package dispatch

import (
	"cmp"
	"sync/atomic"
	"time"

	"replayd/internal/limits"
	"replayd/internal/measure"
)

// Config has the options of a Dispatcher.
type Config struct {
	Lanes       int           // most requests in flight
	Closed      bool          // a row comes due when a lane is free instead of at an instant
	Sessions    int           // closed loop: most sessions in progress; 0: without limit
	LoopTime    time.Duration // open loop: nothing of a loop comes due later than this after its start; 0: no limit
	HoldLanes   bool          // closed loop: a conversation keeps its lane during the delay between turns
	DropLate    bool          // a row that finds no free lane at its instant is dropped at once
	MaxWait     time.Duration // longest wait for a lane; 0: without limit
	History     bool          // later turns contain the server's answers to earlier turns
	Ahead       int           // most bytes of messages that are built and not sent yet
	FollowsWall bool          // the plan's instants follow the wall clock, also after it is set
	Clock       Clock         // maps the instants of a plan that does not; zero: the clocks at the begin of its first loop
	Floats      bool          // replayd chose the begin of the plan itself: it may be later
	Paused      bool          // the dispatcher begins paused
	Coupled     bool          // rows of sessions come after their parents on both sides of a comparison
	HoldReader  bool          // at the bound of Waiting the reader waits; else rows are dropped as overload

	Breaker  *limits.Breaker // nil: no guard
	Budget   limits.Budget
	Spending *limits.Spending // of the workload, over reloads; nil without a budget
	Waiting  *Waiting         // shared by all workloads of a process; nil: no bound
	Slots    *Slots           // shared with the predecessors and the successors of this dispatcher
	Moves    *atomic.Uint64   // counts actions at once, so that another goroutine sees a long Step move; nil: not counted
}

// Slots count, over all reloads, the waiting and in-flight requests of a workload, its sessions in progress, and the turns
// that predecessors may send and have no lane for. A closed loop that takes over subtracts those of its predecessors from
// its own.
type Slots struct{ taken, sessions, called int }

// A Dispatcher holds every row from the plan to the end of its request. Make it with New. The caller serializes all calls, also
// those of dispatchers that share its Slots, Spending or Breaker.
type Dispatcher struct {
	Config
	lists
	messages
	missed
	ending
	closed  *closedLoop // nil: an open loop
	loops   map[int64]*Loop
	playing *Loop        // of the row that came due last; nil before the first loop
	played  time.Time    // planned, just after the last row that came due
	free    int          // lanes that would take a row now
	flying  int          // rows in flight
	now     time.Time    // of the running Step
	wakes   time.Time    // instant of the last WakeAt
	crowded limits.Spell // during which rows were dropped at the bound of Waiting
	paused  bool         // an open loop drops rows that come due; in a closed loop none comes due
	judged  uint64       // order of the latest reading that the guard was judged by
	visits  int          // how often a loop has looked at a row or an edge
	out     []Action     // of the running Step
	sends   bool         // out has a Send
	sated   bool         // open loop: the reader waits until fewer rows are ahead
}

// New returns a dispatcher without rows.
func New(c Config) *Dispatcher {
	d := &Dispatcher{Config: c, loops: map[int64]*Loop{}, free: c.Lanes, paused: c.Paused}
	d.delayed = rowHeap{sooner: readySooner, visits: &d.visits}
	d.sendable = rowHeap{sooner: cameSooner, visits: &d.visits}
	d.holding.chain, d.unbuilt.chain, d.behind.chain = inLine, toBuild, toBuild
	d.Slots = cmp.Or(d.Slots, new(Slots))
	if c.Closed {
		d.MaxWait = 0 // nothing waits for a lane
		d.closed = &closedLoop{pool: 2*c.Lanes + 16}
		if c.Sessions > 0 {
			d.closed.pool = sessionsAhead
		}
	}
	return d
}

func (d *Dispatcher) do(a Action) {
	d.out = append(d.out, a)
	if d.Moves != nil {
		d.Moves.Add(1)
	}
}

type lists struct {
	upcoming list    // in order of due; of a closed loop in its order, without turns that wait for an earlier one
	called   list    // closed loop: turns that may go, taken before new conversations
	delayed  rowHeap // turns in their delay or gap, by ready
	blocked  list    // rows that are due and wait for a parent
	waiting  list    // in order of ready
	sendable rowHeap // the waiting rows with a message or a build error, in the same order
	holding  list    // the waiting rows that those behind them may not overtake, likewise
	order    int     // rows that have begun to wait
	weight   int     // bytes of the rows that are not due yet
}

// messages are the rows without a message yet, and the bytes of built messages.
type messages struct {
	unbuilt list // in plan order
	behind  list // turns that wait for an earlier turn
	builder *Row // the row that the builder works on; nil: the builder is free
	bytes   int  // reserved for messages that are built and not yet sent
}

// missed describes times in which the process did not run.
type missed struct {
	underWay  bool          // a row of the plan has come due
	ran       time.Time     // when the dispatcher was last asked anything; zero: never
	stood     [2]time.Time  // begin and end of the latest standstill of the process
	rejoined  time.Time     // rows due until this instant are missed
	heldUntil time.Time     // until when Waiting held the reader back: rows read late for that are not missed
	lag       time.Duration // length of a standstill that is not reported yet; 0: none
}

type ending struct {
	bounded   []*Loop   // loops with an end of their own that has not come, in order
	ends      time.Time // nothing comes due from this instant on; zero: no end
	until     time.Time // from which on rows are the successor's; zero: there is none. See Retire
	retired   bool      // that instant has come: turns of sessions in progress go on, and nothing else
	left      []*Row    // see Left
	exhausted bool      // nothing comes due any more, by ends
	offPlan   bool      // the plan must be entered again at the present instant
	fed       bool      // no more rows will be read
	stopped   bool      // nothing new is sent
	done      bool      // nothing is left and nothing will come
	unsettled bool      // a loop may be over; settle finds out
}

// A closedLoop is the extra state of a closed loop. Its rows have no instants: each time a lane is free one row comes due, a turn of a
// running conversation before the next row of the plan. So no request waits for a lane, and none is dropped as overload or missed:
// during a pause, an open guard, a spent budget or a standstill of the process no row comes due.
type closedLoop struct {
	pool        int         // limit of rows in memory, without turns that wait for an earlier one
	opens       time.Time   // nothing comes due before
	fired       time.Time   // the instant of the last Step
	again       time.Time   // when to retry after the guard or the budget held a row back; zero: no retry
	pausedLanes []time.Time // when each lane that is kept out of use is free again, in order

	latest measure.Outcome // of the request that ended last
	alike  int             // requests in a row that ended so

	// places taken of Config.Sessions, of those that Slots count: by a session until its last row has ended, by a row
	// without a session until it has
	active int
	vacant []time.Time // when each place of a session that failed is free again
	// the waiting rows up to this one, by Row.order, came due before a pause or an open guard; 0: none
	back           int
	suspended      bool      // a pause, the guard or the budget keeps rows from coming due
	suspendedUntil time.Time // until when that was so
}
