package live

import (
	"slices"
	"sync"
	"time"

	"replayd/internal/measure"
)

// Retention and resolution. The last minute keeps whole histograms of latencies. Older slots keep only percentiles, so
// that a workload takes tens of kilobytes and not hundreds.
const (
	second      = time.Second
	slotTime    = 5 * second
	slots       = 120 // 10 minutes
	minuteSlots = 12
	rateTime    = 10 * second
	minuteMarks = 60
)

// The latencies that are kept, as array indices.
const (
	ttft = iota
	tpot
	lateness
	latencies
)

// A history covers the last minutes of a workload. A workload that
// replaces another one of the same name continues its history.
type history struct {
	mu       sync.Mutex
	recent   [minuteSlots + 1][latencies]histogram // the slot being filled and the minute before it
	filling  int
	failures failures

	counts []countsAt // one per tick, the oldest first, for a minute
	slot   int        // number of the slot being filled
	closed countsAt   // counts at the end of the last slot
	rows   []row      // of ended slots, the oldest first
	late   value      // p99 of lateness of the last minute, as of the end of the last slot; only ticks use it
}

// observe takes a finished request. A request that was sent has a lateness, a request that ended ok has latencies.
func (h *history) observe(r *measure.Request) {
	place := [latencies]int{-1, -1, -1}
	if r.Sent() {
		place[lateness] = bucketOf(r.Lateness())
	}
	if r.Outcome == measure.OK {
		if d, defined := r.TTFT(); defined {
			place[ttft] = bucketOf(d)
		}
		if d, defined := r.TPOT(); defined {
			place[tpot] = bucketOf(d)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, bucket := range place {
		if bucket >= 0 {
			h.recent[h.filling][i][bucket]++
		}
	}
	if r.Outcome.Failed() {
		h.failures.add(r)
	}
}

// rebase drops the counts, because a different set of counters follows. The rows stay.
func (h *history) rebase() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.counts = nil
}

// tick records the counts of an instant in the slot with the given number. It returns the rows of the slots that are
// over. If the process stood still, several slots are over, and all but the first are unknown.
func (h *history) tick(now time.Time, slot int, c measure.Ledger) []row {
	m := countsAt{at: now, Ledger: c}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.rows == nil && len(h.counts) == 0 {
		h.slot = slot // the history begins here
	}
	if len(h.counts) == 0 {
		h.closed = m // nothing to subtract from
	}
	if len(h.counts) > minuteMarks {
		h.counts = append(h.counts[:0], h.counts[1:]...)
	}
	h.counts = append(h.counts, m)
	if slot == h.slot {
		return nil
	}

	recent := h.lastMinute()
	h.late = recent[lateness].percentile(99)
	over := make([]row, min(slot-h.slot, slots))
	for i := range over {
		over[i] = unknownRow
		if i == 0 {
			over[i] = h.row(m, c.InFlight)
		}
		h.filling = (h.filling + 1) % len(h.recent)
		h.recent[h.filling] = [latencies]histogram{}
	}
	h.slot, h.closed = slot, m
	h.rows = append(h.rows, over...)
	h.rows = append(h.rows[:0], h.rows[max(0, len(h.rows)-slots):]...)
	return over
}

// row sums up the slot being filled, which ends with m.
func (h *history) row(m countsAt, inFlight int64) row {
	d := m.since(h.closed)
	r := row{
		rowOK: d.perSecond(d.Outcomes[measure.OK]), rowFailed: d.perSecond(d.Failed()), rowDropped: d.perSecond(d.Unsent()),
		rowOutput: d.perSecond(d.OutputTokens), rowPrompt: d.perSecond(d.PromptTokens), rowInFlight: value(inFlight),
	}
	for i := range latencies {
		hist := &h.recent[h.filling][i]
		r[rowLatencies+2*i], r[rowLatencies+2*i+1] = hist.percentile(50), hist.percentile(99)
	}
	return r
}

// lastMinute returns the latencies of the slot being filled and of the 12 slots before it: 60 to 65 s.
func (h *history) lastMinute() (sum [latencies]histogram) {
	for i := range h.recent {
		for j := range sum {
			sum[j].add(&h.recent[i][j])
		}
	}
	return sum
}

func (h *history) minute() countsAt {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.within(minuteMarks * second)
}

// within returns the counts since the youngest counts that are at least d old, or else since the oldest.
func (h *history) within(d time.Duration) countsAt {
	if len(h.counts) == 0 {
		return countsAt{}
	}
	last := h.counts[len(h.counts)-1]
	from := h.counts[0]
	for _, m := range h.counts {
		if last.at.Sub(m.at) < d {
			break
		}
		from = m
	}
	return last.since(from)
}

// The closed lists of outcomes and drop reasons, in the order in which they are shown.
var (
	outcomes    = measure.Outcomes()
	dropReasons = measure.DropReasons()
)

// A countsAt holds the counts at an instant or, as a difference, the counts within a time.
type countsAt struct {
	at   time.Time
	took time.Duration // of a difference
	measure.Ledger
}

// since returns the counts between two instants: those that the page shows. Sessions, retries, broken bounds and
// present numbers are left at 0.
func (m countsAt) since(from countsAt) countsAt {
	return countsAt{m.at, m.at.Sub(from.at), measure.Ledger{
		Expected: m.Expected - from.Expected, Good: m.Good - from.Good, Eligible: m.Eligible - from.Eligible, Unjudged: m.Unjudged - from.Unjudged,
		PromptTokens: m.PromptTokens - from.PromptTokens, OutputTokens: m.OutputTokens - from.OutputTokens,
		Outcomes: less(m.Outcomes, from.Outcomes), Dropped: less(m.Dropped, from.Dropped), Filtered: m.Filtered - from.Filtered,
	}}
}

// less returns the growth of counts, without those that did not grow.
func less[K comparable](counts, from map[K]int64) map[K]int64 {
	grown := map[K]int64{}
	for key, n := range counts {
		if n != from[key] {
			grown[key] = n - from[key]
		}
	}
	return grown
}

// drops returns the dropped and the filtered requests by reason.
func drops(l measure.Ledger) map[measure.DropReason]int64 {
	all := less(l.Dropped, nil)
	if l.Filtered != 0 {
		all[measure.Filtered] = l.Filtered
	}
	return all
}

// perSecond returns a count of a difference as a rate, or unknown if no time passed.
func (m countsAt) perSecond(n int64) value {
	if m.took <= 0 {
		return unknown
	}
	return value(float64(n) / m.took.Seconds())
}

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

var columns = [rowColumns]string{
	"ok_per_second", "failed_per_second", "dropped_per_second", "output_tokens_per_second", "prompt_tokens_per_second",
	"in_flight", "ttft_p50", "ttft_p99", "tpot_p50", "tpot_p99", "lateness_p50", "lateness_p99",
}

// A row sums up a slot that is over: rates, requests in flight at its end, and percentiles of its latencies in seconds.
type row [rowColumns]value

var unknownRow = row(slices.Repeat([]value{unknown}, rowColumns))
