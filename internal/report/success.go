package report

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"replayd/internal/measure"
	"replayd/internal/number"
	"replayd/internal/result"
)

// Bounds of what is said of failures in one line.
const (
	mostReasons = 3
	mostReason  = 160 // characters of a server's words
)

// A reason is why requests failed: the same outcome with the same words, numbers apart.
type reason struct {
	outcome  measure.Outcome
	status   int
	text     string // of the first one
	requests int
}

// reasons groups the failures of rows, the most frequent first.
func reasons(rows []result.Row) []reason {
	at := map[reason]int{} // by the reason without numbers, of no requests yet
	var all []reason
	for _, r := range rows {
		if !r.Outcome.Failed() {
			continue
		}
		like := reason{outcome: r.Outcome, status: r.Status, text: numbers.ReplaceAllLiteralString(r.Error, "0")}
		i, known := at[like]
		if !known {
			i = len(all)
			at[like] = i
			all = append(all, reason{outcome: r.Outcome, status: r.Status, text: r.Error})
		}
		all[i].requests++
	}
	slices.SortStableFunc(all, func(a, b reason) int { return cmp.Compare(b.requests, a.requests) })
	return all
}

// numbers are masked when messages are grouped.
var numbers = regexp.MustCompile(`\p{Nd}+`)

// refused says whether a server did not take a request: its answer was one of HTTP's 4xx.
func refused(o measure.Outcome) bool { return o == measure.HTTP4xx || o == measure.HTTP429 }

// successLine says in one line what became of all requests, and why some failed. Those that were cancelled on purpose are
// neither ok nor failed, and no part of the rate.
func successLine(r result.Run, f result.Figures) string {
	rows := r.Measured()
	turnedAway := 0
	for _, row := range rows {
		if refused(row.Outcome) {
			turnedAway++
		}
	}
	counts := []string{number.Whole(len(rows)) + " sent", number.Whole(f.OK) + " ok"}
	add := func(n int, what string) {
		if n > 0 {
			counts = append(counts, number.Whole(n)+" "+what)
		}
	}
	add(turnedAway, "refused")
	add(f.Failed-turnedAway, "failed")
	add(f.Cancelled, "cancelled")
	if l := r.Ledger; l != nil {
		for _, why := range measure.DropReasons() {
			add(int(l.Dropped[why]), "dropped ("+string(why)+")")
		}
		add(int(l.Filtered), "filtered")
	}
	line := fmt.Sprintf("Success Rate: %s (%s", share(f.OK, f.OK+f.Failed), strings.Join(counts, ", "))
	why := reasons(rows)
	for i, one := range why {
		if i == mostReasons {
			line += fmt.Sprintf("; %d other reasons", len(why)-mostReasons)
			break
		}
		between := "; "
		if i == 0 {
			between = ": "
		}
		line += between + one.String()
	}
	return line + ")"
}

func (r reason) String() string {
	text := strings.Join(strings.Fields(r.text), " ") // in one line
	kind := string(r.outcome)
	if r.status >= 300 {
		kind = fmt.Sprintf("HTTP %d", r.status)
	}
	if strings.HasPrefix(text, kind) { // the words say it themselves
		kind = ""
	}
	if width(text) > mostReason {
		text = cut(text, mostReason) + "…"
	}
	parts := []string{number.Whole(r.requests) + "×"}
	for _, p := range []string{kind, text} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	return strings.Join(parts, " ")
}
