package measure

import (
	"fmt"
	"maps"
	"slices"
)

// A Ledger counts a workload's requests by outcome and by drop reason, up to an instant. Every count of requests and of good requests that
// replayd shows comes from a ledger. Its maps have no zero counts.
type Ledger struct {
	Expected int64                `json:"expected"` // fell due, whether sent or not
	InFlight int64                `json:"in_flight"`
	Waiting  int64                `json:"waiting"`             // fell due and wait for a lane or for the previous turn
	Outcomes map[Outcome]int64    `json:"outcomes"`            // finished requests
	Dropped  map[DropReason]int64 `json:"dropped"`             // never sent; without Filtered
	Filtered int64                `json:"filtered"`            // over the length limits, or with several choices; not in Expected
	Good     int64                `json:"good"`                // ended ok and met every bound of the SLO
	Eligible int64                `json:"eligible"`            // the service is responsible for their outcome; see Eligible
	Unjudged int64                `json:"not_judged,omitzero"` // ok, and not known whether good: neither that nor eligible
	Sessions Sessions             `json:"sessions,omitzero"`

	Retries      int64            `json:"-"`
	PromptTokens int64            `json:"-"` // of ok requests, as counted by the server
	OutputTokens int64            `json:"-"`
	Broken       map[string]int64 `json:"-"` // ok requests by the bound that they missed, one count for each bound
}

// Judged returns how many of the expected requests are not Unjudged.
func (l Ledger) Judged() int64 { return l.Expected - l.Unjudged }

// Attainment returns good ÷ expected: the fraction of the planned load that was served well. Requests that are not judged do not
// count. ok is false if none is left.
func (l Ledger) Attainment() (share float64, ok bool) { return shareOf(l.Good, l.Judged()) }

// ServiceAttainment returns good ÷ eligible: the fraction of the requests for which the service is responsible that it
// served well. ok is false if nothing was eligible.
func (l Ledger) ServiceAttainment() (share float64, ok bool) { return shareOf(l.Good, l.Eligible) }

func shareOf(n, of int64) (share float64, ok bool) {
	if of <= 0 {
		return 0, false
	}
	return float64(n) / float64(of), true
}

// Finished returns the number of requests that ended, with any outcome.
func (l Ledger) Finished() int64 { return sumOf(l.Outcomes) }

// Failed returns the number of requests that failed.
func (l Ledger) Failed() int64 { return l.Finished() - l.Outcomes[OK] - l.Outcomes[Cancelled] }

// Unsent returns the number of expected requests that were dropped.
func (l Ledger) Unsent() int64 { return sumOf(l.Dropped) }

func sumOf[K comparable](counts map[K]int64) (n int64) {
	for _, of := range counts {
		n += of
	}
	return n
}

// Balance returns an error if a ledger from outside has a negative count or if its counts do not add up.
func (l Ledger) Balance() error {
	for _, n := range slices.Concat([]int64{l.Expected, l.InFlight, l.Waiting, l.Filtered, l.Good, l.Eligible, l.Unjudged},
		slices.Collect(maps.Values(l.Outcomes)), slices.Collect(maps.Values(l.Dropped))) {
		if n < 0 {
			return fmt.Errorf("ledger: want counts of at least 0, got %d", n)
		}
	}
	if ended := l.Finished() + l.Unsent() + l.InFlight + l.Waiting; ended != l.Expected {
		return fmt.Errorf("ledger: want expected = finished + dropped + in flight + waiting, got %d and %d", l.Expected, ended)
	}
	if l.Good+l.Unjudged > l.Outcomes[OK] || l.Good > l.Eligible || l.Eligible > l.Expected {
		return fmt.Errorf("ledger: want good ≤ ok, good ≤ eligible ≤ expected, got %d, %d, %d and %d", l.Good, l.Outcomes[OK], l.Eligible, l.Expected)
	}
	return l.Sessions.balance()
}

// Add adds a ledger of another workload, or of another shard of the same workload.
func (l Ledger) Add(other Ledger) Ledger {
	return Ledger{
		Expected: l.Expected + other.Expected, InFlight: l.InFlight + other.InFlight, Waiting: l.Waiting + other.Waiting,
		Outcomes: AddUp(l.Outcomes, other.Outcomes), Dropped: AddUp(l.Dropped, other.Dropped), Filtered: l.Filtered + other.Filtered,
		Good: l.Good + other.Good, Eligible: l.Eligible + other.Eligible, Unjudged: l.Unjudged + other.Unjudged,
		Sessions: l.Sessions.Add(other.Sessions),
		Retries:  l.Retries + other.Retries, PromptTokens: l.PromptTokens + other.PromptTokens, OutputTokens: l.OutputTokens + other.OutputTokens,
		Broken: AddUp(l.Broken, other.Broken),
	}
}

// AddUp returns the sums of two maps of counts.
func AddUp[K comparable](a, b map[K]int64) map[K]int64 {
	sum := make(map[K]int64, len(a))
	maps.Copy(sum, a)
	for key, n := range b {
		sum[key] += n
	}
	return sum
}

// Eligible reports whether a request with this outcome is eligible: the service, and not replayd, ended it.
func (o Outcome) Eligible() bool { return o != Cancelled && o != Aborted }

// Eligible reports whether a dropped request is eligible. Overload drops are: the service's answers took so long that no
// lane was free. They are not if the workload sheds load on purpose.
func (r DropReason) Eligible(sheds bool) bool { return r == SessionFailed || r == Overload && !sheds }

// Lists of label values, in the order of /metrics and of the pages.
var (
	outcomes = [...]Outcome{
		OK, HTTP3xx, HTTP4xx, HTTP429, HTTP5xx, ConnectFailed, TimeoutConnect, NoAnswer, TimeoutFirstToken, TimeoutStall,
		TimeoutTotal, Truncated, BadStream, ErrorEvent, ServerAbort, Empty, Cancelled, Aborted,
	}
	dropReasons = [...]DropReason{Overload, Guarded, Budget, Paused, Missed, SessionFailed, Invalid, Shutdown, Filtered}
)

// Lengths of the lists.
const (
	NumOutcomes    = len(outcomes)
	NumDropReasons = len(dropReasons)
)

// Outcomes returns all outcomes, ok first, in the order of /metrics and of the pages.
func Outcomes() []Outcome { return slices.Clone(outcomes[:]) }

// DropReasons returns all reasons for a drop.
func DropReasons() []DropReason { return slices.Clone(dropReasons[:]) }

// RecordsVersion is the version of records files. A file with a greater one may mean something else by the same
// fields, and is refused.
const RecordsVersion = 1

// A LedgerLine is a line of a records file that holds the ledger of one workload: {"ledger":{…}}.
type LedgerLine struct {
	Version  int    `json:"version"`  // RecordsVersion of the writer; 0: from before there was one, and read as 1
	Time     int64  `json:"time_ns"`  // instant of the ledger, in Unix ns like began_ns
	Began    int64  `json:"began_ns"` // instant at which all counts were 0; it tells the runs of a file apart
	Workload string `json:"workload"`
	Target   string `json:"target"`
	Shard    string `json:"shard"` // index/count, such as 0/2
	SLO      string `json:"slo"`   // in the syntax of ParseSLO
	Ledger
}
