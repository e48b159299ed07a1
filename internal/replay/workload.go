package replay

import (
	"cmp"
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"replayd/internal/dispatch"
	"replayd/internal/fault"
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

// Sending says how the requests of a workload are sent, with the keys of a workload.
type Sending struct {
	Warmup   Warmup        `koanf:"warmup"`
	Cancel   Cancel        `koanf:"cancel"`
	Lanes    int           `koanf:"lanes"`    // most requests in flight; of a closed plan, the number in flight while there are rows
	Overload Overload      `koanf:"overload"` // Wait or Drop; in a closed plan nothing waits for a lane
	MaxWait  time.Duration `koanf:"max_wait"` // longest wait for a lane; 0: without limit
}

// Warmup is the number of requests sent before the plan begins: its first rows, in their order and with their texts. No
// statistics and no series include them; only Hooks.Warmed observes them, with phase warmup. They are sent in a closed
// loop on Lanes if the plan is closed, else on WarmupLanes (0: 1). An epoch that is not given is set when they have
// ended. A runner that takes over from another sends none.
type Warmup struct {
	Requests int `koanf:"requests"`
}

// Check returns the faults of the options.
func (s *Sending) Check() (f fault.List) {
	f.AtLeast("warmup.requests", s.Warmup.Requests, 0)
	f = append(f, s.Cancel.Check().Under("cancel")...)
	f.AtLeast("lanes", s.Lanes, 1)
	f.OneOf("overload", string(s.Overload), string(Wait), string(Drop))
	f.NotNegative("max_wait", s.MaxWait)
	return f
}

// Workload is one plan against one target, with all its options. Fields without a stated default are required.
type Workload struct {
	Traffic
	Hooks
	Handover
	Environment
}

// Traffic has the requests of a workload, their instants and their bounds.
type Traffic struct {
	Name string
	Plan *schedule.Plan
	Sending
	LengthLimits
	Guard  limits.Guard
	Budget limits.Budget

	Prompt    *synth.Prompter
	Salt      synth.Salt
	SaltName  string        // in salts, in place of Name: two sides with one SaltName send equal texts; "": Name
	Request   RequestFields // added to every request; probes have none
	Calibrate bool          // subtract the server's own tokens (chat template, beginning of text) from synthesized prompts
	History   bool          // later turns have the server's answers to earlier turns as assistant messages
	Output    int           // tokens of an answer to ask for where a row does not say, and is no whole body; 0: none are asked for
	Whole     bool          // answers are not streamed
	Keep      bool          // requests have the texts of their answers for observers

	Hold        bool          // closed plan: a conversation keeps its lane between turns; else the lane takes other rows
	Rows        int           // number of rows, without filtered ones; a closed plan repeats the trace for them. 0: all
	Duration    time.Duration // nothing comes due later than this after the plan begins; 0: no limit
	LoopTime    time.Duration // of a plan with instants: nothing of a loop comes due later than this after its start; 0: no limit
	WarmupLanes int

	Sides     *Sides // shared with the runner of the other target of a comparison; nil: there is no comparison
	Candidate bool   // the target is the comparison's candidate
}

// Hooks observe a workload. A nil function is not called. None may block.
type Hooks struct {
	Observers []Observer
	Warmed    []Observer                          // of the requests of the warm-up
	Dropped   func(why measure.DropReason, n int) // n requests were due and not sent, filtered ones included
	Saved     func(Sent)                          // a request of the plan was written; by several goroutines
	Session   func(*measure.Session)              // a session has ended; under the runner's lock. It must not change it

	// Due is called with every row that comes due, and its instant by the wall clock, in the order of the plan and
	// under the runner's lock. Unsent is called likewise with every one of them that is dropped, and with the due
	// instant of the first row of its session that failed or was dropped.
	Due    func(row *schedule.Due, planned time.Time)
	Unsent func(*schedule.Due, measure.DropReason, time.Time)

	NoRows func(error)              // why nothing comes due while the plan goes on; nil: rows come due again
	Lost   func(Lost)               // no more rows can be read; rows that were read are sent. Called once
	Noted  func(slog.Level, string) // the replay rejoins its plan at the present instant, or a limit of the guard opened or closed

	Reuse   *synth.Reuse  // counts the tokens that prompts share with each other; nil: not counted
	Clipped *atomic.Int64 // counts the requests that came due and were clipped; nil: not counted
}

// Environment has the parts of the process that a workload uses.
type Environment struct {
	Client *openai.Client
	Target *Target // of the same client; the caller starts its Run
	Count  *metrics.Workload
	Log    *slog.Logger
	Drain  time.Duration    // how long requests in flight may go on after a stop
	Wall   func() time.Time // the wall clock; nil: time.Now

	// Load returns the engine's present load. Its error says why the load is unknown: nothing was scraped yet, or too
	// long ago. nil: nothing is scraped. Several goroutines call it before every row and every second, without the
	// runner's lock, so it may take a lock of its own. It must not block or allocate.
	Load func() (limits.Load, error)

	// CountInput counts the tokens of the rows' own texts, for records and for the limits; nil: there is no tokenizer.
	// CountOutput counts the tokens of answers without usage. Several goroutines call them.
	CountInput, CountOutput func(text []byte) (int, error)

	// BeforeFirst is called before a plan without an Epoch begins, after the warm-up. The plan begins when it returns.
	// nil: nothing is called.
	BeforeFirst func(ctx context.Context)

	Waiting    *dispatch.Waiting // bounds the memory of waiting rows in all workloads of the process; nil: no bound
	HoldReader bool              // at the bound of Waiting the reader waits; else rows are dropped as overload
	Pacer      *Pacer            // shared by all runners of the process, runs longer than they
	Ahead      int               // most bytes of messages that are built and not sent yet; 0: aheadBytes
}

const aheadBytes = 8 << 20

// saltName returns the workload's name in salts.
func (t *Traffic) saltName() string { return cmp.Or(t.SaltName, t.Name) }

// side returns the workload's place.
func (w *Workload) side() side {
	switch {
	case w.Sides == nil:
		return alone
	case w.Candidate:
		return candidate
	}
	return baseline
}

func (e *Environment) clock() dispatch.Clock {
	now := time.Now()
	if e.Wall == nil {
		return dispatch.Clock{Own: now, Wall: now.Round(0)} // Round(0) strips the monotonic reading
	}
	return dispatch.Clock{Own: now, Wall: e.Wall().Round(0)}
}
