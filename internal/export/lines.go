package export

import (
	"fmt"
	"strings"

	"replayd/internal/measure"
	"replayd/internal/number"
	"replayd/internal/result"
)

// mostReasons is the most reasons in one line.
const mostReasons = 3

// refused reports whether the server refused a request with HTTP 4xx.
func refused(o measure.Outcome) bool { return o == measure.HTTP4xx || o == measure.HTTP429 }

// successLine says in one line how the requests ended, and why some failed. Requests that the workload cancelled are
// neither ok nor failed, and not part of the success rate.
func successLine(r result.Run, f result.Statistics) string {
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
	why := result.Reasons(rows)
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

// plannedLines describes, below a table, how much of the planned load was sent and served well.
func plannedLines(r result.Run) []string {
	if r.Ledger == nil {
		return []string{"Attainment: N/A (" + result.UnknownLedger + ")"}
	}
	l := *r.Ledger
	ofExpected, ofEligible := result.AttainmentTexts(l)
	for _, more := range []string{result.DroppedText(l), result.UnfinishedText(l)} {
		if more != "" {
			ofExpected += ", " + more
		}
	}
	return []string{
		fmt.Sprintf("Attainment: %s (%s)", share(int(l.Good), int(l.Expected)), ofExpected),
		fmt.Sprintf("Service Attainment: %s (%s)", share(int(l.Good), int(l.Eligible)), ofEligible),
	}
}
