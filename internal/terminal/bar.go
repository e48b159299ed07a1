package terminal

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// A field is a part of a line. If the fields do not all fit, those of the highest rank are dropped first.
type field struct {
	text  string
	rank  int
	least int // columns that it may be cut to before it is dropped; 0: it is not cut
}

// state returns how far the run is: requests done, time and time left.
func (v view) state() []field {
	count := fmt.Sprintf("%d done", v.done())
	if v.Requests > 0 {
		count = fmt.Sprintf("%d of %d", v.done(), v.Requests)
	}
	fields := []field{{text: count, rank: 2}, {text: seconds(v.elapsed), rank: 3}}
	if left := v.left(); left != "" {
		fields = append(fields, field{text: left, rank: 1})
	}
	return fields
}

// figures returns the fields of rates and latencies. Those of the last seconds are left out at the end.
func (v view) figures() []field {
	var fields []field
	add := func(rank int, show bool, format string, values ...any) {
		if show {
			fields = append(fields, field{text: fmt.Sprintf(format, values...), rank: rank})
		}
	}
	add(7, !v.ended, "%.1f/s", v.rate())
	add(5, !v.ended, "%d in flight", v.Ledger.InFlight)
	add(3, true, "%d failed", v.Ledger.Failed())
	add(3, v.cancelled() > 0, "%d cancelled", v.cancelled())
	add(3, v.Ledger.Unsent() > 0, "%d dropped", v.Ledger.Unsent())
	add(4, len(v.ttft) > 0, "TTFT p50 %s", v.ttft.percentile(50))
	add(6, len(v.ttft) > 0, "p99 %s", v.ttft.percentile(99))
	add(8, len(v.tpot) > 0, "TPOT p50 %s", v.tpot.percentile(50))
	add(9, len(v.lateness) > 0, "lateness p99 %s", v.lateness.percentile(99))
	if v.lastErr != "" {
		fields = append(fields, field{text: "last error: " + v.lastErr, rank: 10, least: 24})
	}
	return fields
}

const (
	oneLine  = 120 // columns from which everything is on one line
	leastBar = 10  // cells, or an eighth of the columns if that is more
	maxBar   = 60
	gap      = "  "
)

// lines returns the view as one or two lines for a terminal. Each line leaves the last column free, because some
// terminals wrap when it is written.
func (v view) lines(columns int) []string {
	room := max(1, columns-1)
	if _, known := v.share(); !known {
		return []string{v.line(room)}
	}
	if columns >= oneLine {
		return []string{v.barred(append(v.state(), v.figures()...), room)}
	}
	return []string{v.barred(v.state(), room), fit(v.figures(), room)}
}

func (v view) line(room int) string {
	state := v.state()
	state[0], state[1] = state[1], state[0]
	state[0].text = fmt.Sprintf("%6s", state[0].text) // so that consecutive lines are aligned
	return fit(append(state, v.figures()...), room)
}

// barred returns a line with a bar before its fields, if there is room for a bar.
func (v view) barred(fields []field, room int) string {
	share, _ := v.share()
	percent := fmt.Sprintf("%3d %%", int(100*share)) // 100 only when all is done
	least := max(leastBar, room/8)
	rest := fit(fields, room-len("[]"+gap+percent+gap)-least)
	if rest != "" {
		rest = gap + rest
	}
	cells := min(maxBar, room-len("[]"+gap+percent)-Width(rest))
	if cells < least {
		return cut(percent+rest, room)
	}
	full := int(float64(cells) * share)
	bar := strings.Repeat("=", full)
	if full < cells {
		bar += ">"
	}
	return fmt.Sprintf("[%-*s]%s%s%s", cells, bar, gap, percent, rest)
}

// fit joins the fields. It drops those of the highest ranks until the line fits.
func fit(fields []field, room int) string {
	for {
		var texts []string
		for _, f := range fields {
			texts = append(texts, f.text)
		}
		line := strings.Join(texts, gap)
		over := Width(line) - room
		if over <= 0 || len(fields) == 1 {
			return cut(line, room)
		}
		last := slices.MaxFunc(fields, func(a, b field) int { return cmp.Compare(a.rank, b.rank) })
		at := slices.Index(fields, last)
		if short := Width(last.text) - over; last.least > 0 && short >= last.least {
			fields[at].text = cut(last.text, short)
			continue
		}
		fields = slices.Delete(fields, at, at+1)
	}
}

// Width returns the number of columns of a text. It assumes that there are no wide or combining characters; only a
// server's error can have them.
func Width(s string) int { return utf8.RuneCountInString(s) }

// cut returns the start of a text, at most room columns.
func cut(s string, room int) string {
	if Width(s) <= room {
		return s
	}
	return string([]rune(s)[:max(0, room)])
}
