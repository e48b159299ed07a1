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

// mostReason is how many characters of a server's words an error report shows.
const mostReason = 160

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

func (r reason) String() string {
	text := strings.Join(strings.Fields(r.text), " ") // in one line
	kind := string(r.outcome)
	if r.status >= 300 {
		kind = fmt.Sprintf("HTTP %d", r.status)
	}
	if strings.HasPrefix(text, kind) { // the words say it themselves
		kind = ""
	}
	if letters := []rune(text); len(letters) > mostReason {
		text = string(letters[:mostReason]) + "…"
	}
	parts := []string{number.Whole(r.requests) + "×"}
	for _, p := range []string{kind, text} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	return strings.Join(parts, " ")
}
