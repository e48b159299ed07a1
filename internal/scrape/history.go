package scrape

import (
	"math/bits"
	"slices"
	"time"

	"replayd/internal/secret"
)

// Limits of the history of one address.
const (
	rememberedStarts = 16 // starts of processes
	rememberedFalls  = 10 // scrapes
	regainWithin     = 3  // scrapes; a restarted engine needs longer to reach its earlier counts
)

// A history detects from the pages of one address that another process answers than before. Either the engine has
// restarted, or several processes share the address, as behind a virtual IP.
type history struct {
	start   time.Time   // process_start_time_seconds; zero: the page has none
	starts  []time.Time // start times of earlier processes
	totals  map[total]float64
	scrapes int               // so far
	falls   uint              // a bit per recent scrape: another process answered
	regains uint              // likewise: counters regained their earlier values, or an earlier process returned
	lost    map[total]float64 // the values before the latest fall; nil: no recent fall
	since   int               // scrapes since the latest fall
	shared  bool

	generated float64                 // output tokens since the first page that had them, over restarts
	tokens    map[secret.Text]float64 // as the latest page with them counts them, by rank; nil: no page has had them
}

type total struct {
	quantity *Quantity
	rank     secret.Text
}

// add records a page. Once shared is true it stays true until no other process has answered for rememberedFalls
// scrapes.
func (h *history) add(start time.Time, r *Reading) (restarted, shared bool) {
	totals := map[total]float64{}
	fell, ahead := false, len(h.lost) > 0
	for _, f := range r.Figures {
		k := total{f.Quantity, f.Rank}
		var v float64
		switch {
		case f.Quantity.Kind == Counter:
			v = f.Value
		case f.Buckets != nil:
			v = float64(f.Buckets.GetSampleCount())
		default:
			continue
		}
		totals[k] = v
		if f.Quantity == generationTokens {
			h.generate(f.Rank, v)
		}
		fell = fell || v < h.totals[k]
		ahead = ahead && v >= h.lost[k]
	}
	returned := false
	other := fell
	if !start.IsZero() && !h.start.IsZero() {
		other = !start.Equal(h.start)
		returned = other && slices.ContainsFunc(h.starts, start.Equal)
	}
	if other && !h.start.IsZero() {
		h.starts = append(h.starts, h.start)
		if len(h.starts) > rememberedStarts {
			h.starts = h.starts[1:]
		}
	}
	h.since++
	switch {
	case fell:
		h.lost, h.since = h.totals, 0
	case ahead, h.since == regainWithin:
		h.lost = nil
	}
	h.scrapes++
	h.falls, h.regains = push(h.falls, other), push(h.regains, ahead && !fell || returned)
	// If the page has a process start time, the return of an earlier one proves that the address is shared. Otherwise
	// two falls of the counters that are each soon made up again show the same: they are no restarts.
	switch {
	case returned, h.start.IsZero() && start.IsZero() && bits.OnesCount(h.falls) >= 2 && bits.OnesCount(h.regains) >= 2:
		h.shared = true
	case h.falls == 0 && h.scrapes >= rememberedFalls:
		h.shared = false
	}
	if !start.IsZero() { // a partial page may lack the start time
		h.start = start
	}
	h.totals = totals
	return other && !h.shared, h.shared
}

// generate adds the output tokens that a page counts for a rank.
func (h *history) generate(rank secret.Text, now float64) {
	if h.tokens == nil {
		h.tokens = map[secret.Text]float64{}
	}
	before, known := h.tokens[rank]
	switch {
	case known && now >= before:
		h.generated += now - before
	case known: // the engine has restarted
		h.generated += now
	}
	h.tokens[rank] = now
}

// push adds a bit to those of the latest rememberedFalls scrapes.
func push(recent uint, v bool) uint {
	recent = recent << 1 & (1<<rememberedFalls - 1)
	if v {
		recent |= 1
	}
	return recent
}
