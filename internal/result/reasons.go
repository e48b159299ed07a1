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

// maxReason is the most characters of a server's message in an error report.
const maxReason = 160

// A Reason groups failed requests with the same outcome, status and message. Messages that differ only in numbers are
// the same.
type Reason struct {
	Outcome  measure.Outcome
	Status   int
	Text     string // of the first request
	Requests int
}

// Reasons groups the failures of rows, the most frequent first.
func Reasons(rows []Row) []Reason {
	at := map[Reason]int{} // index in all, by the reason with masked numbers and without Requests
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

// numbers matches the digits that are masked to group messages.
var numbers = regexp.MustCompile(`\p{Nd}+`)

func (r Reason) String() string {
	text := strings.Join(strings.Fields(r.Text), " ") // on one line
	kind := string(r.Outcome)
	if r.Status >= 300 {
		kind = fmt.Sprintf("HTTP %d", r.Status)
	}
	if strings.HasPrefix(text, kind) { // the message already says it
		kind = ""
	}
	if letters := []rune(text); len(letters) > maxReason {
		text = string(letters[:maxReason]) + "…"
	}
	parts := []string{number.Whole(r.Requests) + "×", kind, text}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), " ")
}
