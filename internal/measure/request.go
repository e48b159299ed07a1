// Package measure holds what one request was and what it is worth: its timeline and outcome, the latencies that follow from them, and
// service levels; and the ledger that counts requests by what became of them. It reads no clock: every instant comes with the request.
package measure

import "time"

// An Outcome is how a request ended. Every finished request has exactly one.
type Outcome string

// Outcomes, the whole list: label values come from here and nowhere else.
const (
	OK                Outcome = "ok"
	HTTP3xx           Outcome = "http_3xx"
	HTTP4xx           Outcome = "http_4xx"
	HTTP429           Outcome = "http_429"
	HTTP5xx           Outcome = "http_5xx"
	ConnectFailed     Outcome = "connect"
	TimeoutConnect    Outcome = "timeout_connect"
	TimeoutFirstToken Outcome = "timeout_first_token"
	TimeoutStall      Outcome = "timeout_stall"
	TimeoutTotal      Outcome = "timeout_total"
	Truncated         Outcome = "truncated"
	BadStream         Outcome = "bad_stream"
	ErrorEvent        Outcome = "error_event"
	Empty             Outcome = "empty"
	Cancelled         Outcome = "cancelled"
	Aborted           Outcome = "aborted"
)

// A RunPhase is what a request was sent for.
type RunPhase string

// Phases of a run.
const (
	Profiling RunPhase = ""       // to be measured
	Warmup    RunPhase = "warmup" // to warm the server up: it counts in no figure
)

// String is the phase's name in records: profiling or warmup.
func (p RunPhase) String() string {
	if p == Profiling {
		return "profiling"
	}
	return string(p)
}

// Failed says whether an outcome is a failure: a cancellation that the workload asked for is none.
func (o Outcome) Failed() bool { return o != OK && o != Cancelled }

// A DropReason is why a due request was never sent.
type DropReason string

// Drop reasons, the whole list of what can happen today.
const (
	Overload DropReason = "overload" // no lane, waited longer than max_wait, or would have to wait beyond max_waiting
	Guarded  DropReason = "guard"    // fell due, or waited, while a limit of the guard was open
	Budget   DropReason = "budget"   // would have been more than the budget of a minute, an hour or a day
	Paused   DropReason = "paused"   // fell due, or waited, while the workload was paused
	Missed   DropReason = "missed"   // this process was there but did not run at the due instant: suspended, starved
	Shutdown DropReason = "shutdown" // still waiting when the workload was stopped or replaced
	Invalid  DropReason = "invalid"  // its message could not be built: the fault of the row or the configuration, never the target's
	Filtered DropReason = "filtered" // over the configured length limits; not expected

	// SessionFailed: an earlier turn of the session failed. If an earlier turn was dropped, later turns have its drop reason.
	SessionFailed DropReason = "session_failed"
)

// A GuardLimit is what can have a workload hold its requests back.
type GuardLimit string

// Limits of the guard, the whole list.
const (
	GuardWaiting      GuardLimit = "waiting"         // requests that wait in the engine's queue
	GuardKVCacheUsage GuardLimit = "kv_cache_usage"  // share of the engine's KV cache
	GuardErrorRatio   GuardLimit = "error_ratio"     // share of the workload's own requests that failed
	GuardBlind        GuardLimit = "missing_metrics" // the engine metrics cannot be scraped
	GuardUnsupported  GuardLimit = "unsupported"     // the engine's page does not have a figure that a limit needs
)

// A UsageSource is where the token counts of an answer come from.
type UsageSource string

// Usage sources, best first.
const (
	UsageFinal   UsageSource = "usage"   // usage at the end of the answer
	UsageChunks  UsageSource = "chunks"  // usage on each chunk, the last one seen
	UsageTimings UsageSource = "timings" // llama.cpp's timings
	UsageText    UsageSource = "text"    // the answer's text, counted by a tokenizer
	UsageCounted UsageSource = "counted" // content chunks counted: a lower bound
)

// Usage is what the server says that the request cost, in tokens.
type Usage struct {
	Prompt, Output, Cached, Reasoning int
	CacheTold                         bool        // the server said how many were Cached, be it none
	Source                            UsageSource // "" when there was no answer
}

// A Timeline is what happened when. Instants that did not come are zero. All carry monotonic readings
// of this process, so that their differences are true across steps of the wall clock.
type Timeline struct {
	Planned time.Time // the plan's instant
	Due     time.Time // from here all "from due" figures count; the plan's instant in an open loop
	Ready   time.Time // max(Due, end of the session wait): lateness counts from here
	Lane    time.Time // a free lane took the request; its lane wait is Lane − Ready when it had to wait, else 0
	Waited  bool      // no lane was free at Ready
	Write   time.Time // the first byte was handed to the kernel
	Head    time.Time // the head of the answer came: its status and headers
	Cancel  time.Time // the cancellation that the workload asked for closed the connection
	End     time.Time // the request was finished with, whatever the outcome

	Whole bool // one JSON answer was asked for, no stream: it is one chunk, and there is no first token

	Connect time.Duration   // time to open a connection for this request (name, dial, TLS); 0 on a kept or warmed one
	Chunks  []time.Duration // arrival of each content chunk since Write, in order; reused by the next request of the lane

	ReadDelays  []time.Duration // per socket read that held content: time of the read − kernel's receive time; reused
	MergedReads int             // reads that held more than one content chunk
	Kernel      bool            // chunk times are the kernel's receive stamps
}

// A Request is one request after it finished: filled once, read by everybody after. Its slices belong to the
// lane that made it and are overwritten by its next request: an observer that keeps them copies them.
type Request struct {
	ID       string // workload/loop/row, sent as X-Request-Id
	Loop     int64
	Row      int // trace.Record.Number
	Session  string
	Turn     int      // trace.Record.Turn
	Phase    RunPhase // what it was sent for
	Lane     int      // which lane of the workload carried it, from 0
	Timeline Timeline

	Outcome      Outcome
	Error        string // its text, with the server's own words where it gave any; "" when ok; at most 512 bytes
	Status       int    // HTTP status; 0 when none came
	Retried      bool   // sent a second time, because a kept connection had been closed
	FinishReason string

	InputTokens  int // asked for by the trace; 0 when the row brings its own text
	OutputTokens int // asked for by the trace; 0 when the row does not say
	Overhead     int // template tokens taken off the prompt
	Usage        Usage
	CountedInput int // tokens of the row's own text, messages or payload by a tokenizer; 0 without one
	Events       int // data events of the stream, content or not

	Text    []byte // the answer's content, where it was to be kept; reused by the next request of the lane
	TextCut bool   // there was more of it than is kept
}
