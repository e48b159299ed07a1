package scrape

import "time"

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
	falls   []bool            // per recent scrape: another process answered
	regains []bool            // per recent scrape: counters regained their earlier values, or an earlier process returned
	lost    map[total]float64 // the values before the latest fall; nil: no recent fall
	since   int               // scrapes since the latest fall
	shared  bool
}

type total struct {
	quantity *Quantity
	rank     string
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
	// If the page has a process start time, the return of an earlier one proves that the address is shared. Otherwise
	// two falls of the counters that are each soon made up again show the same: they are no restarts.
	switch {
	case returned, h.start.IsZero() && start.IsZero() && count(h.falls) >= 2 && count(h.regains) >= 2:
		h.shared = true
	case count(h.falls) == 0 && len(h.falls) == rememberedFalls:
		h.shared = false
	}
	if !start.IsZero() { // a partial page may lack the start time
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
