package measure

import (
	"fmt"
	"maps"
	"slices"
)

// A Ledger says what became of the requests of a workload up to an instant. Everything that replayd says about how many there were,
// and how many were good, comes from one. Its maps have no zeros.
type Ledger struct {
	Expected int64                `json:"expected"` // fell due, sent or not
	InFlight int64                `json:"in_flight"`
	Waiting  int64                `json:"waiting"`  // fell due and wait for a lane or for the turn before
	Outcomes map[Outcome]int64    `json:"outcomes"` // finished requests
	Dropped  map[DropReason]int64 `json:"dropped"`  // never sent; without Filtered
	Filtered int64                `json:"filtered"` // over the configured length limits; not expected
	Good     int64                `json:"good"`     // ended ok, within every bound of the service level
	Eligible int64                `json:"eligible"` // their fate is known and is the service's; see WorkloadOptions.Sheds

	Retries      int64            `json:"-"`
	PromptTokens int64            `json:"-"` // of ok requests, as the server counts them
	OutputTokens int64            `json:"-"`
	Broken       map[string]int64 `json:"-"` // ok requests by the bound that they broke, one under each
}

// Attainment is how much of the planned load was served well: good ÷ expected. It is not ok where nothing was expected.
func (l Ledger) Attainment() (share float64, ok bool) { return shareOf(l.Good, l.Expected) }

// ServiceAttainment is how well the service did with what it was given: good ÷ eligible. It is not ok where nothing was eligible.
func (l Ledger) ServiceAttainment() (share float64, ok bool) { return shareOf(l.Good, l.Eligible) }

func shareOf(n, of int64) (share float64, ok bool) {
	if of <= 0 {
		return 0, false
	}
	return float64(n) / float64(of), true
}

// Finished is how many requests have ended, whatever their outcome.
func (l Ledger) Finished() int64 { return sumOf(l.Outcomes) }

// Unsent is how many expected requests were dropped.
func (l Ledger) Unsent() int64 { return sumOf(l.Dropped) }

func sumOf[K comparable](counts map[K]int64) (n int64) {
	for _, of := range counts {
		n += of
	}
	return n
}

// Balance tells what is wrong with a ledger that came from outside: a count below 0, or counts that do not add up.
func (l Ledger) Balance() error {
	for _, n := range slices.Concat([]int64{l.Expected, l.InFlight, l.Waiting, l.Filtered, l.Good, l.Eligible},
		slices.Collect(maps.Values(l.Outcomes)), slices.Collect(maps.Values(l.Dropped))) {
		if n < 0 {
			return fmt.Errorf("ledger: want counts of at least 0, got %d", n)
		}
	}
	if ended := l.Finished() + l.Unsent() + l.InFlight + l.Waiting; ended != l.Expected {
		return fmt.Errorf("ledger: want expected = finished + dropped + in flight + waiting, got %d and %d", l.Expected, ended)
	}
	if l.Good > l.Outcomes[OK] || l.Good > l.Eligible || l.Eligible > l.Expected {
		return fmt.Errorf("ledger: want good ≤ ok, good ≤ eligible ≤ expected, got %d, %d, %d and %d", l.Good, l.Outcomes[OK], l.Eligible, l.Expected)
	}
	return nil
}

// Add is the ledger of two workloads, or of two shards of one.
func (l Ledger) Add(other Ledger) Ledger {
	return Ledger{
		Expected: l.Expected + other.Expected, InFlight: l.InFlight + other.InFlight, Waiting: l.Waiting + other.Waiting,
		Outcomes: addUp(l.Outcomes, other.Outcomes), Dropped: addUp(l.Dropped, other.Dropped), Filtered: l.Filtered + other.Filtered,
		Good: l.Good + other.Good, Eligible: l.Eligible + other.Eligible,
		Retries: l.Retries + other.Retries, PromptTokens: l.PromptTokens + other.PromptTokens, OutputTokens: l.OutputTokens + other.OutputTokens,
		Broken: addUp(l.Broken, other.Broken),
	}
}

func addUp[K comparable](a, b map[K]int64) map[K]int64 {
	sum := make(map[K]int64, len(a))
	maps.Copy(sum, a)
	for key, n := range b {
		sum[key] += n
	}
	return sum
}

// Eligible says whether a request that ended so is eligible: its end was the service's doing, and not ours.
func (o Outcome) Eligible() bool { return o != Cancelled && o != Aborted }

// Eligible says whether a request that was never sent is eligible. Overload is the service's doing too: its answers took so long that no
// lane was free. A workload that sheds wants it so.
func (r DropReason) Eligible(sheds bool) bool { return r == SessionFailed || r == Overload && !sheds }

// The closed lists behind label values, in the order in which /metrics and pages show them.
var (
	outcomes = [...]Outcome{
		OK, HTTP3xx, HTTP4xx, HTTP429, HTTP5xx, ConnectFailed, TimeoutConnect, TimeoutFirstToken, TimeoutStall,
		TimeoutTotal, Truncated, BadStream, ErrorEvent, Empty, Cancelled, Aborted,
	}
	dropReasons = [...]DropReason{Overload, Guarded, Budget, Paused, Missed, SessionFailed, Invalid, Shutdown, Filtered}
	guardLimits = [...]GuardLimit{GuardWaiting, GuardKVCacheUsage, GuardErrorRatio, GuardBlind, GuardUnsupported}
)

// Lengths of the lists.
const (
	NumOutcomes    = len(outcomes)
	NumDropReasons = len(dropReasons)
	NumGuardLimits = len(guardLimits)
)

// GuardLimits lists every limit of a guard.
func GuardLimits() []GuardLimit { return slices.Clone(guardLimits[:]) }

// Outcomes lists every outcome, ok first, in the order in which /metrics and pages show them.
func Outcomes() []Outcome { return slices.Clone(outcomes[:]) }

// DropReasons lists every reason for which a request is never sent.
func DropReasons() []DropReason { return slices.Clone(dropReasons[:]) }
