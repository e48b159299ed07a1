// Package measure defines a finished request: its timeline, its outcome and the latencies that follow from them. It also
// defines SLOs, and the ledger that counts requests by outcome. It reads no clock: every instant comes with the request.
package measure

import (
	"slices"
	"strings"
	"time"

	"replayd/internal/secret"
)

// An Outcome is how a request ended. Every finished request has exactly one.
type Outcome string

// Outcomes; the list is complete. Label values come from here only.
const (
	OK                Outcome = "ok"
	HTTP3xx           Outcome = "http_3xx"
	HTTP4xx           Outcome = "http_4xx"
	HTTP429           Outcome = "http_429"
	HTTP5xx           Outcome = "http_5xx"
	ConnectFailed     Outcome = "connect"
	TimeoutConnect    Outcome = "timeout_connect"
	NoAnswer          Outcome = "no_answer"
	TimeoutFirstToken Outcome = "timeout_first_token"
	TimeoutStall      Outcome = "timeout_stall"
	TimeoutTotal      Outcome = "timeout_total"
	Truncated         Outcome = "truncated"
	BadStream         Outcome = "bad_stream"
	ErrorEvent        Outcome = "error_event"
	ServerAbort       Outcome = "server_abort"
	Empty             Outcome = "empty"
	Cancelled         Outcome = "cancelled"
	Aborted           Outcome = "aborted"
)

// A RunPhase is the purpose of a request.
type RunPhase string

// Phases of a run.
const (
	Profiling RunPhase = ""       // it is measured
	Warmup    RunPhase = "warmup" // it warms up the server and is in no figure
)

// String returns the phase's name in records: profiling or warmup.
func (p RunPhase) String() string {
	if p == Profiling {
		return "profiling"
	}
	return string(p)
}

// Failed reports whether an outcome is a failure. A cancellation that the workload asked for is no failure.
func (o Outcome) Failed() bool { return o != OK && o != Cancelled }

// Unreached reports whether the server gave no byte of an answer because there was no connection or it ended.
func (o Outcome) Unreached() bool { return o == ConnectFailed || o == TimeoutConnect || o == NoAnswer }

// A DropReason is the reason why a due request was never sent.
type DropReason string

// Drop reasons; the list is complete.
const (
	Overload DropReason = "overload" // no lane was free, longer than max_wait, or too many requests waited
	Guarded  DropReason = "guard"    // fell due, or waited, while a limit of the guard was open
	Budget   DropReason = "budget"   // would have exceeded the budget of a minute, an hour or a day
	Paused   DropReason = "paused"   // fell due, or waited, while the workload was paused
	// Missed: this process did not run at the due instant, or lacked a resource for the request or its guard.
	Missed   DropReason = "missed"
	Shutdown DropReason = "shutdown" // still waited when the workload was stopped or replaced
	Invalid  DropReason = "invalid"  // its message could not be built because of the row or the configuration
	Filtered DropReason = "filtered" // over the configured length limits; not expected

	// SessionFailed: an earlier turn of the session, or a row that this one comes after, failed. After a dropped row the reason is that row's.
	SessionFailed DropReason = "session_failed"
)

// A UsageSource is the source of an answer's token counts.
type UsageSource string

// Usage sources, most accurate first.
const (
	UsageFinal   UsageSource = "usage"   // usage at the end of the answer
	UsageChunks  UsageSource = "chunks"  // usage of the last chunk that has one
	UsageTimings UsageSource = "timings" // llama.cpp's timings
	UsageText    UsageSource = "text"    // the answer's text, counted with a tokenizer
	UsageCounted UsageSource = "counted" // number of content chunks: a lower bound
)

// Usage is the cost of a request in tokens, as reported by the server.
type Usage struct {
	Prompt, Output, Cached, Reasoning int
	Opening                           int         // output tokens of the first content chunk, if the server reports usage for each chunk; 0: unknown, taken as 1
	CacheReported                     bool        // the server reported Cached, even if it is 0
	Source                            UsageSource // "" if there was no answer
	Rules                             UsageRules  // that made these counts out of the server's
}

// UsageRules are the rules that were applied to the server's counts, one bit for each.
type UsageRules uint8

// Rules; the list is complete. docs/reference/answers.md says when each applies.
const (
	TotalMinusPrompt UsageRules = 1 << iota // output = total − prompt
	TotalMinusOutput                        // prompt = total − output
	ReasoningBeside                         // output = output + reasoning: the server's output did not include it
	NoOutput                                // no output beside content: counted as without usage
	KeptLarger                              // a later usage was smaller
	Clipped                                 // more cached tokens than the prompt has, or more reasoning than output
	TotalDiffers                            // total is not the sum; nothing was changed
)

var usageRules = [...]string{
	"total_minus_prompt", "total_minus_output", "reasoning_beside", "no_output", "kept_larger", "clipped", "total_differs",
}

// NumUsageRules is the number of rules.
const NumUsageRules = len(usageRules)

// UsageRuleNames returns the names of all rules, as in series, in the order of their bits.
func UsageRuleNames() []string { return slices.Clone(usageRules[:]) }

// Names returns the names of the rules that are set.
func (r UsageRules) Names() (names []string) {
	for i, name := range usageRules {
		if r&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// String returns the names of the rules, joined by commas; "" for none.
func (r UsageRules) String() string { return strings.Join(r.Names(), ",") }

// Names of finish reasons that are in no row of the table of meaning.
const (
	NoFinish    = "none"  // the answer has none
	OtherFinish = "other" // it is not known, and ends well
)

// Decoded returns the number of output tokens after the first content chunk.
func (u *Usage) Decoded() int { return u.Output - max(1, u.Opening) }

// A Timeline holds the instants of a request. An instant that did not happen is zero. All instants carry monotonic readings
// of this process, so a step of the wall clock does not change their differences.
type Timeline struct {
	Planned time.Time // instant in the plan
	Due     time.Time // start of all latencies "from due"; equals Planned in an open loop
	Ready   time.Time // max(Due, end of the session wait): start of the lateness
	Lane    time.Time // a free lane took the request; the lane wait is Lane − Ready if Waited, else 0
	Waited  bool      // no lane was free at Ready
	Write   time.Time // the first byte was passed to the kernel
	Head    time.Time // status and headers of the answer arrived
	Cancel  time.Time // the connection was closed by a cancellation that the workload asked for
	End     time.Time // the request ended, with any outcome

	Whole bool // the request asked for one JSON answer, not for a stream: one chunk, and no first token

	Connect time.Duration   // time to open a connection before the first write (DNS, dial, TLS); 0 if one was open already
	Chunks  []time.Duration // arrival of each content chunk since Write, in order; the lane's next request reuses the slice

	// ReasoningChunks is the number of content chunks before the first that has text or tool-call arguments besides reasoning: all of them
	// in an answer of reasoning only.
	ReasoningChunks int

	ReadDelays  []time.Duration // by socket read with content: time of the read − kernel's receive time; reused
	MergedReads int             // reads with more than one content chunk
	Kernel      bool            // chunk times are the kernel's receive timestamps
	ClockSet    bool            // the wall clock was set while bytes waited for their read: chunks may be late by that, and by their read delay
	Early       bool            // content came before Write, as an answer to no request or by a clock that is wrong: no latency is known
}

// A Request is a finished request. It does not change. Its slices belong to the lane, whose next request overwrites them:
// an observer that keeps a slice must copy it.
type Request struct {
	ID       string // workload/loop/row, sent as X-Request-Id
	Loop     int64
	Row      int // trace.Record.Number
	Session  string
	Turn     int      // trace.Record.Turn
	Model    string   // that the row names; "": it names none
	Phase    RunPhase // purpose of the request
	Lane     int      // index of the lane in the workload, from 0
	Pod      uint16   // of the target that it was sent to, from 1; 0: none was known
	Timeline Timeline

	Outcome      Outcome
	Error        secret.Text // error text, including the server's own text; "" if ok; at most 512 bytes
	Status       int         // HTTP status; 0 if none was received
	Replica      secret.Text // that answered, as the target's replica_header names it; "" if the answer has no such header
	Retried      bool        // sent a second time, because a kept connection was stale; times count from the first write
	FinishReason secret.Text
	Finish       string      // the finish reason's name in the table of meaning: none, other, or one of a fixed list
	Unread       int         // events, or parts of them, without a meaning to the reader
	UnreadText   secret.Text // beginning of the first of them

	InputTokens  int // requested by the trace; 0 if the row brings its own text
	OutputTokens int // requested by the trace; 0 if the row does not say
	Overhead     int // tokens of the chat template that were taken off the prompt
	Usage        Usage
	CountedInput int // tokens of the row's own text, messages or payload, counted with a tokenizer; 0 without one
	Events       int // data events of the stream, with or without content

	Text    []byte // the answer's content if it is kept; the lane's next request reuses the slice
	TextCut bool   // Text is not complete: the answer was longer than the bound
}

// An Echo says what became of the header of an answer that later requests of its session send back.
type Echo uint8

// Values of Echo; the list is complete.
const (
	EchoNone     Echo = iota // no header is wanted, or the answer is not of status 2xx or of a session
	EchoKept                 // later requests send the value, or what it leaves of their cookies
	EchoMissing              // the answer does not have the header
	EchoUnusable             // the value is longer than 4 KiB, is not printable ASCII, or there is no memory left for it
	NumEchoes
)

var echoes = [NumEchoes]string{"none", "kept", "missing", "unusable"}

// String returns the name, as in series.
func (e Echo) String() string { return echoes[e] }
