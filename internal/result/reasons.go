package result

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"replayd/internal/measure"
	"replayd/internal/number"
)

// mostReason is how many characters of a server's words an error report shows.
const mostReason = 160

// A Reason is why requests failed: the same outcome with the same words, numbers apart.
type Reason struct {
	Outcome  measure.Outcome
	Status   int
	Text     string // of the first one
	Requests int
}

// Reasons groups the failures of rows, the most frequent first.
func Reasons(rows []Row) []Reason {
	at := map[Reason]int{} // by the reason without numbers, of no requests yet
	var all []Reason
	for _, r := range rows {
		if !r.Outcome.Failed() {
			continue
		}
		like := Reason{Outcome: r.Outcome, Status: r.Status, Text: numbers.ReplaceAllLiteralString(r.Error, "0")}
		i, known := at[like]
		if !known {
			i = len(all)
			at[like] = i
			all = append(all, Reason{Outcome: r.Outcome, Status: r.Status, Text: r.Error})
		}
		all[i].Requests++
	}
	slices.SortStableFunc(all, func(a, b Reason) int { return cmp.Compare(b.Requests, a.Requests) })
	return all
}

// numbers are masked when messages are grouped.
var numbers = regexp.MustCompile(`\p{Nd}+`)

func (r Reason) String() string {
	text := strings.Join(strings.Fields(r.Text), " ") // in one line
	kind := string(r.Outcome)
	if r.Status >= 300 {
		kind = fmt.Sprintf("HTTP %d", r.Status)
	}
	if strings.HasPrefix(text, kind) { // the words say it themselves
		kind = ""
	}
	if letters := []rune(text); len(letters) > mostReason {
		text = string(letters[:mostReason]) + "…"
	}
	parts := []string{number.Whole(r.Requests) + "×"}
	for _, p := range []string{kind, text} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	return strings.Join(parts, " ")
}
