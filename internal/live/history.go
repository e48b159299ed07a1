package live

import (
	"sync"
	"time"

	"replayd/internal/measure"
)

// What is remembered, and how finely. Latencies of the last minute are whole histograms; of a slot that is older only
// its quantiles are left, so that a workload takes tens of kilobytes and not hundreds.
const (
	second      = time.Second
	slotTime    = 5 * second
	slots       = 120 // 10 minutes
	minuteSlots = 12
	rateTime    = 10 * second
	minuteMarks = 60
)

// The latencies that are kept, as places in an array.
const (
	ttft = iota
	tpot
	lateness
	latencies
)

// A history is what a workload did in the last minutes. A workload that replaces another one of its name goes on with it.
type history struct {
	mu       sync.Mutex
	recent   [minuteSlots + 1][latencies]histogram // the slot that is being filled and the minute before it
	filling  int
	failures failures

	counts []countsAt // one a tick, the oldest first: a minute of them
	slot   int        // number of the one that is being filled
	closed countsAt   // where the last slot ended
	rows   []row      // of ended slots, the oldest first
	late   value      // p99 of lateness of the last minute, as of the end of the last slot; only ticks use it
}

// observe takes a finished request. One that was sent has a lateness, one that ended ok its latencies.
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

// rebase forgets what had been counted, because other counters follow. What was made of them stays.
func (h *history) rebase() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.counts = nil
}

// tick notes what has been counted by now, in a slot with the given number. It returns the rows of the slots that are
// over: more than one when this process did not run for some time, and then all but the first are unknown.
func (h *history) tick(now time.Time, slot int, c measure.Ledger) []row {
	m := newCountsAt(now, c)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.rows == nil && len(h.counts) == 0 {
		h.slot = slot // it begins here
	}
	if len(h.counts) == 0 {
		h.closed = m // there is nothing to subtract from
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

// row sums up the slot that is being filled and ends at an instant.
func (h *history) row(m countsAt, inFlight int64) row {
	d := m.since(h.closed)
	r := row{
		rowOK: d.perSecond(d.ok()), rowFailed: d.perSecond(d.failed()), rowDropped: d.perSecond(d.lost()),
		rowOutput: d.perSecond(d.output), rowPrompt: d.perSecond(d.prompt), rowInFlight: value(inFlight),
	}
	for i := range latencies {
		hist := &h.recent[h.filling][i]
		r[rowLatencies+2*i], r[rowLatencies+2*i+1] = hist.percentile(50), hist.percentile(99)
	}
	return r
}

// lastMinute are the latencies of the slot that is being filled and the 12 before it: 60 to 65 s.
func (h *history) lastMinute() (sum [latencies]histogram) {
	for i := range h.recent {
		for j := range sum {
			sum[j].add(&h.recent[i][j])
		}
	}
	return sum
}

// minute is what was counted in the last minute.
func (h *history) minute() countsAt {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.within(minuteMarks * second)
}

// within is what was counted in about the last d: since the youngest counts that are so old, or else the oldest.
func (h *history) within(d time.Duration) countsAt {
	if len(h.counts) == 0 {
		return newCountsAt(time.Time{}, measure.Ledger{})
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
