package replay

import (
	"log/slog"
	"sync/atomic"
	"time"

	"replayd/internal/dispatch"
	"replayd/internal/limits"
	"replayd/internal/measure"
	"replayd/internal/metrics"
	"replayd/internal/openai"
	"replayd/internal/schedule"
	"replayd/internal/synth"
)

// Overload says what happens to a request that finds no free lane at its instant.
type Overload string

// Overload policies.
const (
	Wait Overload = "wait" // it waits for a lane, at most MaxWait
	Drop Overload = "drop" // it is dropped at once
)

// OverLimit says what happens to a row that is longer than MaxInput, MaxOutput or MaxContext.
type OverLimit string

// Treatments of rows over the length limits.
const (
	Filter OverLimit = "filter" // it is not part of the replay
	Clip   OverLimit = "clip"   // it is cut to the limit: of a context the end of its input, unless its output alone is over it
	Send   OverLimit = "send"   // it goes out as it is
)

// An Observer is called with every request that ended. Calls come from many goroutines. A request and its slices are
// the lane's again when Observe returns.
type Observer interface {
	Observe(*measure.Request)
}

// Sent is a request as it was written.
type Sent struct {
	Due    *schedule.Due
	Offset time.Duration // when it was due, since the loop's start
	Body   []byte        // the JSON; valid until Saved returns
}

// Workload is one plan against one target, with all its options. Fields without a stated default are required.
type Workload struct {
	Name    string
	Plan    *schedule.Plan
	Prompt  *synth.Prompter
	Salt    synth.Salt
	Request RequestFields // of every request; probes carry none
	Client  *openai.Client
	Target  *Target // of the same client; its Run is the caller's to start
	Count   *metrics.Workload
	Log     *slog.Logger

	Observers []Observer
	Dropped   func(why measure.DropReason, n int) // is called with the number of requests that were due and not sent, filtered ones too; nil: not called
	Rejoined  func(text string)                   // is called with a text each time that the replay rejoins where the clock is; nil: not called
	Saved     func(Sent)                          // is called with every request of the plan that was written, by several goroutines; nil: not called
	Reuse     *synth.Reuse                        // counts the tokens that prompts share with each other; nil: not counted
	Clipped   *atomic.Int64                       // counts the requests that came due and were clipped; nil: not counted
	Held      func(error)                         // is called with why nothing comes due though the plan goes on, and with nil when that is over; nil: not called
	Lost      func(Lost)                          // is called once when no more rows can be read; rows that were read go on. nil: not called
	Guarded   func(slog.Level, string)            // is called with a text each time that a limit of the guard opens or closes; nil: not called

	Lanes      int           // most requests in flight; of a closed plan, as many as there are while there are rows
	Hold       bool          // in a closed plan a conversation keeps its lane while a delay between its turns runs; else that takes other rows
	Overload   Overload      // Wait or Drop; of a closed plan nothing waits for a lane
	MaxWait    time.Duration // longest wait for a lane; 0: without limit
	Ahead      int           // bytes of messages built and not yet sent
	HoldReader bool          // at the bound of Waiting the reader waits; else rows are dropped as overload
	Rows       int           // rows after which the plan is over, filtered ones not counted; a closed one comes round again for them. 0: all
	Duration   time.Duration // nothing comes due later than this after the plan begins; 0: no limit
	MaxInput   int           // tokens; 0: no limit
	MaxOutput  int           // tokens; 0: no limit
	MaxContext int           // tokens of input and output together; 0: no limit
	OverLimit  OverLimit
	Calibrate  bool          // take the server's own tokens (chat template, beginning of text) off synthesized prompts
	Drain      time.Duration // how long requests in flight may go on after a stop

	Whole   bool   // answers come in one piece, and not as streams
	Keep    bool   // observers find the texts of answers in their requests
	History bool   // the assistant's messages of a conversation's later turns are what the server answered to the earlier ones
	Cancel  Cancel // requests that are ended before their answers have come

	// CountInput counts the tokens of texts that rows bring, for records and for the limits; nil: there is no tokenizer. CountOutput does so
	// for answers of servers that do not count. Both are called by several goroutines.
	CountInput, CountOutput func(text []byte) int

	// Warmup is how many requests are sent before the plan begins, the first rows of it in their order and with the texts
	// that they will have. They are in no figure and in no series; only Warmed hear of them, with phase warmup. They go as in
	// a closed loop, whatever the plan is: on Lanes where that is one, else on WarmupLanes (0: 1). An epoch that is not given is
	// set when they have ended. A runner that takes over from another sends none.
	Warmup      int
	WarmupLanes int
	Warmed      []Observer

	Guard  limits.Guard
	Budget limits.Budget
	// Load tells the engine's load of now; its error says why that is not known: nothing was scraped yet, or too long ago.
	// Nil: nothing is scraped. It is called before every row and every second by several goroutines, without a lock of the
	// runner's held, so it may take its own; it does not wait and allocates nothing.
	Load func() (limits.Load, error)

	Epoch   time.Time         // start of the first loop; zero: when the target has answered a probe, or after 5 s
	Begin   time.Time         // rows due before it are another runner's, which Retires then; zero: none are
	After   *Runner           // the one that this one takes over from; it goes on with its budget and guard. Nil: none
	Paused  bool              // begin paused
	Wall    func() time.Time  // the wall clock; nil: time.Now
	Waiting *dispatch.Waiting // bounds the memory of waiting rows in all workloads of the process; nil: no bound
	Pacer   *Pacer            // runs for as long as the runner and all others of the process; nil: the runner has its own
	Sleeper Sleeper           // of its own pacer, which closes it; nil: the most exact one of this system
}
