package scrape

import "time"

// Limits of what is remembered of an address.
const (
	rememberedStarts = 16 // starts of processes
	rememberedFalls  = 10 // scrapes
	regainWithin     = 3  // scrapes; a restarted engine takes longer to count as much as before
)

// A history finds out from what an address says whether the process behind it is another one than before: a restart, or
// the turn of another of several that share the address, as behind a virtual address.
type history struct {
	start   time.Time   // process_start_time_seconds; zero: the page has none
	starts  []time.Time // of processes seen before
	totals  map[total]float64
	falls   []bool            // of the latest scrapes: counters fell
	regains []bool            // of the latest scrapes: counters that had fallen were past their old heights
	lost    map[total]float64 // the heights that they fell from; nil: none did of late
	since   int               // scrapes since then
	shared  bool
}

type total struct {
	quantity *Quantity
	rank     string
}

// add takes in a page. Shared stays once found out, until every counter has gone on for some scrapes.
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
			v = float64(f.Buckets.Count)
		default:
			continue
		}
		totals[k] = v
		fell = fell || v < h.totals[k]
		ahead = ahead && v >= h.lost[k]
	}
	returned := false
	other := fell
	if !start.IsZero() && !h.start.IsZero() {
		other = !start.Equal(h.start)
		if other {
			for _, s := range h.starts {
				returned = returned || s.Equal(start)
			}
		}
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
	h.falls, h.regains = latest(h.falls, other), latest(h.regains, ahead && !fell || returned)
	// Where the page tells when its process started, one that comes back is proof. Where it does not: counters that
	// fall and are soon back past their old heights, twice, are no restarts.
	switch {
	case returned, h.start.IsZero() && start.IsZero() && count(h.falls) >= 2 && count(h.regains) >= 2:
		h.shared = true
	case count(h.falls) == 0 && len(h.falls) == rememberedFalls:
		h.shared = false
	}
	if !start.IsZero() { // half a page may lack it
		h.start = start
	}
	h.totals = totals
	return other && !h.shared, h.shared
}

func latest(list []bool, v bool) []bool {
	list = append(list, v)
	if len(list) > rememberedFalls {
		list = list[1:]
	}
	return list
}

func count(list []bool) (n int) {
	for _, v := range list {
		if v {
			n++
		}
	}
	return n
}
