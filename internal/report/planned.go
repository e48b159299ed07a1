package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"replayd/internal/measure"
	"replayd/internal/number"
	"replayd/internal/result"
)

// unknownLedger is said of files that hold no ledger: those of AIPerf, and old ones.
const unknownLedger = "what was never sent is not in these files"

// dropped says how many expected requests were never sent and why: "30 dropped (overload)"; "" of none.
func dropped(l measure.Ledger) string {
	if l.Unsent() == 0 {
		return ""
	}
	return fmt.Sprintf("%s dropped (%s)", number.Whole(l.Unsent()), whyDropped(l))
}

// neverSent says the same in a sentence: "30 of 40 expected requests were never sent (overload)".
func neverSent(l measure.Ledger) string {
	were := "were"
	if l.Unsent() == 1 {
		were = "was"
	}
	return fmt.Sprintf("%s of %s %s never sent (%s)", number.Whole(l.Unsent()), number.Count(int(l.Expected), "expected request"), were, whyDropped(l))
}

// whyDropped are the reasons, the most frequent first, with their numbers where there are several: "overload", "20 overload, 10 guard".
func whyDropped(l measure.Ledger) string {
	var reasons []measure.DropReason
	for _, why := range measure.DropReasons() {
		if l.Dropped[why] > 0 {
			reasons = append(reasons, why)
		}
	}
	slices.SortStableFunc(reasons, func(a, b measure.DropReason) int { return cmp.Compare(l.Dropped[b], l.Dropped[a]) })
	var texts []string
	for _, why := range reasons {
		text := string(why)
		if len(reasons) > 1 {
			text = number.Whole(l.Dropped[why]) + " " + text
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ", ")
}

// attainments are the numerator and denominator of attainment and of service attainment, in words.
func attainments(l measure.Ledger) (attainment, service string) {
	attainment = fmt.Sprintf("%s good of %s expected", number.Whole(l.Good), number.Whole(l.Expected))
	service = fmt.Sprintf("%s good of %s eligible", number.Whole(l.Good), number.Whole(l.Eligible))
	return attainment, service
}

// plannedLines say under a table how much of the planned load was sent and served well.
func plannedLines(r result.Run) []string {
	if r.Ledger == nil {
		return []string{"Attainment: N/A (" + unknownLedger + ")"}
	}
	l := *r.Ledger
	ofExpected, ofEligible := attainments(l)
	for _, more := range []string{dropped(l), unfinished(l)} {
		if more != "" {
			ofExpected += ", " + more
		}
	}
	return []string{
		fmt.Sprintf("Attainment: %s (%s)", share(int(l.Good), int(l.Expected)), ofExpected),
		fmt.Sprintf("Service Attainment: %s (%s)", share(int(l.Good), int(l.Eligible)), ofEligible),
	}
}

// unfinished says how many requests had not ended when the ledger was written; "" of none.
func unfinished(l measure.Ledger) string {
	n := l.InFlight + l.Waiting
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%s not ended when the ledger was written", number.Whole(n))
}

// attainmentTiles show attainment, service attainment and the number of dropped requests.
func attainmentTiles(r result.Run) []Tile {
	if r.Picked {
		return nil
	}
	if r.Ledger == nil {
		return []Tile{{Name: "Attainment", Text: "not known", Note: unknownLedger}}
	}
	l := *r.Ledger
	ofExpected, ofEligible := attainments(l)
	tiles := []Tile{
		{Name: "Attainment", Text: number.Percent(l.Good, l.Expected), Note: ofExpected},
		{Name: "Service attainment", Text: number.Percent(l.Good, l.Eligible), Note: ofEligible},
	}
	if n := l.Unsent(); n > 0 {
		tiles = append(tiles, Tile{Name: "Never sent", Text: number.Whole(n), Note: fmt.Sprintf("%s of those expected: %s", number.Percent(n, l.Expected), whyDropped(l)), Level: Bad})
	}
	return tiles
}

// allThere says whether the rows of a run are all that its ledger counts as finished. They are more where a process was killed after
// its last ledger, and fewer where files are missing.
func allThere(r result.Run) bool { return r.Ledger.Finished() == int64(len(r.Measured())) }

// cacheTile is what the server had of the prompts.
func cacheTile(r result.Run) Tile {
	if r.Cache == nil {
		return Tile{Name: "Prefix cache", Text: "unknown", Note: "what the server had of the prompts is not in these files"}
	}
	t := Tile{Name: "Prefix cache", Text: number.Percent(r.Cache.Cached, r.Cache.Prompt), Note: r.Cache.String()}
	if r.Cache.Warm() != "" {
		t.Level = Bad
	}
	return t
}

// beyondPlan says why the load was not the planned one, as far as the ledger knows, or that it is not known; "" where all that was
// expected went out.
func beyondPlan(r result.Run) string {
	switch l := r.Ledger; {
	case r.Picked:
		return "These are requests that were picked out of a run"
	case l == nil:
		return upper(unknownLedger)
	case l.Unsent() > 0:
		return "The load was not the planned one: " + neverSent(*l)
	case !allThere(r):
		return "The ledger counts other requests than are in these files"
	case l.InFlight+l.Waiting > 0:
		return fmt.Sprintf("%s of %s had %s", number.Whole(l.InFlight+l.Waiting), number.Count(int(l.Expected), "expected request"), "not ended when the ledger was written")
	}
	return ""
}

// plannedRows hold the ledgers of several runs against each other.
func plannedRows(all []lookedAt) [][]string {
	rows := [][]string{{"Requests expected", "requests"}, {"Never sent", "requests"}, {"Attainment: good of expected", "%"}, {"Service attainment: good of eligible", "%"}, {"Cached prompt tokens", "%"}, {"Cached beyond what the load explains", "%"}}
	for _, r := range all {
		cells := []string{"–", "–", "–", "–", "–", "–"}
		if l := r.Ledger; l != nil {
			cells = append([]string{
				number.Whole(l.Expected), number.Whole(l.Unsent()),
				strings.TrimSuffix(number.Percent(l.Good, l.Expected), " %"), strings.TrimSuffix(number.Percent(l.Good, l.Eligible), " %"),
			}, cells[4:]...)
		}
		if c := r.Cache; c != nil {
			cells[4] = strings.TrimSuffix(number.Percent(c.Cached, c.Prompt), " %")
		}
		if beyond, known := r.Cache.Beyond(); known {
			cells[5] = number.Digits(100*beyond, 3)
		}
		for i, c := range cells {
			rows[i] = append(rows[i], c)
		}
	}
	return rows
}
