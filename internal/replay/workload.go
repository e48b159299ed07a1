package replay

import (
	"cmp"
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
	Wait Overload = "wait" // the request waits for a lane, at most MaxWait
	Drop Overload = "drop" // the request is dropped at once
)

// OverLimit says what happens to a row that is longer than MaxInput, MaxOutput or MaxContext.
type OverLimit string

// Treatments of rows over the length limits.
const (
	Filter OverLimit = "filter" // the row is not part of the replay
	Clip   OverLimit = "clip"   // the row is cut to the limit; over MaxContext its input, unless the output alone exceeds the limit
	Send   OverLimit = "send"   // the row is sent unchanged
)

// An Observer is called with every request that has ended, from many goroutines. It must not keep the request or its
// slices: the lane reuses them when Observe returns.
type Observer interface {
	Observe(*measure.Request)
}

// Sent is a request that was written.
type Sent struct {
	Due    *schedule.Due
	Offset time.Duration // due instant − start of the loop
	Body   []byte        // the JSON; valid until Saved returns
}

// Workload is one plan against one target, with all its options. Fields without a stated default are required.
type Workload struct {
	Name    string
	Plan    *schedule.Plan
	Prompt  *synth.Prompter
	Salt    synth.Salt
	Request RequestFields // added to every request; probes have none
	Client  *openai.Client
	Target  *Target // of the same client; the caller starts its Run
	Count   *metrics.Workload
	Log     *slog.Logger

	Observers []Observer
	Dropped   func(why measure.DropReason, n int)     // called with the number of requests that were due and not sent, filtered ones included; nil: not called
	Rejoined  func(text string)                       // called with a text each time the replay rejoins its plan at the present instant; nil: not called
	Saved     func(Sent)                              // called with every request of the plan that was written, by several goroutines; nil: not called
	Reuse     *synth.Reuse                            // counts the tokens that prompts share with each other; nil: not counted
	Due       func(*schedule.Due)                     // called with every row that comes due, in the order of the plan and under the runner's lock: it must not block. nil: not called
	Unsent    func(*schedule.Due, measure.DropReason) // called with every one of them that is dropped, likewise
	Session   func(*measure.Session)                  // called with every session that has ended, likewise; it must not change it. nil: not called
	Clipped   *atomic.Int64                           // counts the requests that came due and were clipped; nil: not counted
	Held      func(error)                             // called with the reason why nothing comes due while the plan goes on, and with nil afterwards; nil: not called
	Lost      func(Lost)                              // called once when no more rows can be read; rows that were read are sent. nil: not called
	Guarded   func(slog.Level, string)                // called with a text each time a limit of the guard opens or closes; nil: not called

	Lanes      int           // most requests in flight; of a closed plan, the number in flight while there are rows
	Hold       bool          // closed plan: a conversation keeps its lane during the delay between turns; else the lane takes other rows
	Overload   Overload      // Wait or Drop; in a closed plan nothing waits for a lane
	MaxWait    time.Duration // longest wait for a lane; 0: without limit
	Ahead      int           // most bytes of messages that are built and not sent yet
	HoldReader bool          // at the bound of Waiting the reader waits; else rows are dropped as overload
	Rows       int           // number of rows, without filtered ones; a closed plan repeats the trace for them. 0: all
	Duration   time.Duration // nothing comes due later than this after the plan begins; 0: no limit
	MaxInput   int           // tokens; 0: no limit
	MaxOutput  int           // tokens; 0: no limit
	MaxContext int           // tokens of input and output together; 0: no limit
	OverLimit  OverLimit
	Calibrate  bool          // subtract the server's own tokens (chat template, beginning of text) from synthesized prompts
	Drain      time.Duration // how long requests in flight may go on after a stop

	Whole   bool         // answers are not streamed
	Keep    bool         // requests have the texts of their answers for observers
	History bool         // later turns have the server's answers to earlier turns as assistant messages
	Cancel  Cancel       // which requests are cancelled, and when
	Echo    *openai.Echo // header of answers that later requests of their session send back; nil: none

	// CountInput counts the tokens of the rows' own texts, for records and for the limits; nil: there is no tokenizer. CountOutput counts the
	// tokens of answers without usage. Several goroutines call them.
	CountInput, CountOutput func(text []byte) int

	// Warmup is the number of requests sent before the plan begins: its first rows, in their order and with their texts. No
	// statistics and no series include them; only Warmed observes them, with phase warmup. They are sent in a closed loop on
	// Lanes if the plan is closed, else on WarmupLanes (0: 1). An epoch that is not given is set when they have ended. A runner
	// that takes over from another sends none.
	Warmup      int
	WarmupLanes int
	Warmed      []Observer

	Guard  limits.Guard
	Budget limits.Budget
	// Load returns the engine's present load. Its error says why the load is unknown: nothing was scraped yet, or too long ago.
	// nil: nothing is scraped. Several goroutines call it before every row and every second, without the runner's lock, so it
	// may take a lock of its own. It must not block or allocate.
	Load func() (limits.Load, error)

	// SaltName stands for Name in the salts of texts: two sides of a comparison with one SaltName send equal texts. "": Name.
	SaltName string

	Sides     *Sides // shared with the runner of the same plan against the other target of a comparison; nil: there is no comparison
	Candidate bool   // the target is the comparison's candidate

	Epoch   time.Time         // start of the first loop; zero: when the target has answered a probe, or after 5 s
	Begin   time.Time         // rows due earlier belong to the predecessor, which retires then; zero: there is none
	After   *Runner           // the predecessor, whose budget and guard go on; nil: none
	Paused  bool              // begin paused
	Wall    func() time.Time  // the wall clock; nil: time.Now
	Waiting *dispatch.Waiting // bounds the memory of waiting rows in all workloads of the process; nil: no bound
	Pacer   *Pacer            // shared by all runners of the process, runs longer than they; nil: the runner has its own
	Sleeper Sleeper           // of the runner's own pacer, which closes it; nil: the most exact one of this system
}

// saltName returns the workload's name in salts.
func (w *Workload) saltName() string { return cmp.Or(w.SaltName, w.Name) }
