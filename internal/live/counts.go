package live

import (
	"slices"
	"time"

	"replayd/internal/measure"
)

// The closed lists of outcomes and drop reasons, in the order in which they are shown.
var (
	outcomes    = measure.Outcomes()
	dropReasons = measure.DropReasons()

	cancelledPlace = slices.Index(outcomes, measure.Cancelled)
)

// A countsAt holds the counts at an instant or, as a difference, the counts within a time.
type countsAt struct {
	at                       time.Time
	took                     time.Duration // of a difference
	expected, prompt, output int64
	outcomes, dropped        []int64 // in the order of the lists
	good, eligible           int64
}

func newCountsAt(at time.Time, c measure.Ledger) countsAt {
	m := countsAt{
		at: at, expected: c.Expected, good: c.Good, eligible: c.Eligible, prompt: c.PromptTokens, output: c.OutputTokens,
		outcomes: make([]int64, len(outcomes)), dropped: make([]int64, len(dropReasons)),
	}
	for i, o := range outcomes {
		m.outcomes[i] = c.Outcomes[o]
	}
	for i, why := range dropReasons {
		m.dropped[i] = c.Dropped[why]
		if why == measure.Filtered {
			m.dropped[i] = c.Filtered
		}
	}
	return m
}

// since returns the counts between two instants.
func (m countsAt) since(from countsAt) countsAt {
	d := countsAt{
		at: m.at, took: m.at.Sub(from.at), expected: m.expected - from.expected, good: m.good - from.good, eligible: m.eligible - from.eligible,
		prompt: m.prompt - from.prompt, output: m.output - from.output,
		outcomes: make([]int64, len(outcomes)), dropped: make([]int64, len(dropReasons)),
	}
	for i, n := range m.outcomes {
		d.outcomes[i] = n - from.outcomes[i]
	}
	for i, n := range m.dropped {
		d.dropped[i] = n - from.dropped[i]
	}
	return d
}

// attainment returns the service attainment.
func (m countsAt) attainment() (share float64, ok bool) {
	return measure.Ledger{Good: m.good, Eligible: m.eligible}.ServiceAttainment()
}

func (m countsAt) finished() (n int64) {
	for _, of := range m.outcomes {
		n += of
	}
	return n
}

func (m countsAt) failed() (n int64) {
	for i, of := range m.outcomes {
		if outcomes[i].Failed() {
			n += of
		}
	}
	return n
}

func (m countsAt) ok() int64 { return m.outcomes[0] } // the list begins with ok

// cancelled counts requests that the workload ended itself. They are neither good nor bad.
func (m countsAt) cancelled() int64 { return m.outcomes[cancelledPlace] }

// lost counts requests that were due and never sent, for any reason. Filtered rows are never due.
func (m countsAt) lost() (n int64) {
	for i, of := range m.dropped {
		if dropReasons[i] != measure.Filtered {
			n += of
		}
	}
	return n
}

// perSecond returns a count of a difference as a rate, or unknown if no time passed.
func (m countsAt) perSecond(n int64) value {
	if m.took <= 0 {
		return unknown
	}
	return value(float64(n) / m.took.Seconds())
}

// The columns of a row.
const (
	rowOK = iota
	rowFailed
	rowDropped
	rowOutput
	rowPrompt
	rowInFlight
	rowLatencies // p50 and p99 of each
	rowColumns   = rowLatencies + 2*latencies
)

// columns names the columns.
var columns = [rowColumns]string{
	"ok_per_second", "failed_per_second", "dropped_per_second", "output_tokens_per_second", "prompt_tokens_per_second",
	"in_flight", "ttft_p50", "ttft_p99", "tpot_p50", "tpot_p99", "lateness_p50", "lateness_p99",
}

// A row sums up a slot that is over: rates, requests in flight at its end, and percentiles of its latencies in seconds.
type row [rowColumns]value

var unknownRow = func() (r row) {
	for i := range r {
		r[i] = unknown
	}
	return r
}()

// MarshalJSON implements json.Marshaler. It encodes a row in one call, because the first event of a viewer has 120 rows
// of each workload.
func (r row) MarshalJSON() ([]byte, error) {
	b := append(make([]byte, 0, 8*rowColumns), '[')
	for i, f := range r {
		if i > 0 {
			b = append(b, ',')
		}
		b = f.append(b)
	}
	return append(b, ']'), nil
}
