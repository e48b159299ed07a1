package report

import (
	"fmt"
	"slices"
	"strings"

	"replayd/internal/number"
	"replayd/internal/result"
)

// attainmentTiles are the first tiles of a page, and one for its end. Without an SLO every ok request is good, so the
// attainments say less than the latencies: they are one tile, at the end.
func attainmentTiles(r result.Run) (first, last []Tile) {
	if r.Picked {
		return nil, nil
	}
	judged := len(r.Settings.SLO) > 0
	switch {
	case r.Ledger == nil && judged:
		return []Tile{{Name: "Attainment", Text: "not known", Note: result.UnknownLedger}}, nil
	case r.Ledger == nil:
		return nil, []Tile{{Name: "Ok of expected", Text: "not known", Note: result.UnknownLedger}}
	}
	l := *r.Ledger
	ofExpected, ofEligible := result.AttainmentTexts(l)
	if judged {
		first = []Tile{
			{Name: "Attainment", Text: number.Percent(l.Good, l.Judged()), Note: ofExpected},
			{Name: "Service attainment", Text: number.Percent(l.Good, l.Eligible), Note: ofEligible},
		}
	} else {
		last = []Tile{{
			Name: "Ok of expected", Text: number.Percent(l.Good, l.Judged()), Note: ofExpected + "; there is no SLO",
		}}
	}
	if n := l.Unsent(); n > 0 {
		first = append(first, Tile{
			Name: "Never sent", Text: number.Whole(n), Level: Bad,
			Note: fmt.Sprintf("%s of those expected: %s", number.Percent(n, l.Expected), result.WhyDropped(l)),
		})
	}
	return first, last
}

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

// beyondPlan says why the load was not the planned one according to the ledger, or that the ledger is unknown. It
// returns "" if every expected request was sent and ended.
func beyondPlan(r result.Run) string {
	switch l := r.Ledger; {
	case r.Picked:
		return "These are requests that were picked out of a run"
	case l == nil:
		return upper(result.UnknownLedger)
	case l.Unsent() > 0:
		return "The load was not the planned one: " + result.NeverSentText(*l)
	case !result.AllThere(r):
		return "The ledger counts other requests than are in these files"
	case l.InFlight+l.Waiting > 0:
		return fmt.Sprintf("%s of %s had %s", number.Whole(l.InFlight+l.Waiting), number.Count(int(l.Expected), "expected request"), "not ended when the ledger was written")
	}
	return ""
}

func plannedRows(all []runData) [][]string {
	rows := [][]string{
		{"Requests expected"},
		{"Requests never sent"},
		{"Attainment: good of expected (%)"},
		{"Service attainment: good of eligible (%)"},
		{"Cached prompt tokens (%)"},
		{"Cached beyond what the load explains (%)"},
		{"Prompts of other lengths than asked (%)"},
		{"Answers of other lengths than asked (%)"},
	}
	for _, r := range all {
		cells := slices.Repeat([]string{"–"}, len(rows))
		if l := r.Ledger; l != nil {
			cells = append([]string{
				number.Whole(l.Expected), number.Whole(l.Unsent()),
				strings.TrimSuffix(number.Percent(l.Good, l.Judged()), " %"), strings.TrimSuffix(number.Percent(l.Good, l.Eligible), " %"),
			}, cells[4:]...)
		}
		if c := r.Cache; c != nil {
			cells[4] = strings.TrimSuffix(number.Percent(c.Cached, c.Prompt), " %")
		}
		if beyond, known := r.Cache.Beyond(); known {
			cells[5] = number.Digits(100*beyond, 3)
		}
		lengths := r.Lengths()
		for i, s := range []result.LengthSum{lengths.Prompts, lengths.Answers} {
			if s.Compared > 0 {
				cells[6+i] = strings.TrimSuffix(number.Percent(s.Other, s.Compared), " %")
			}
		}
		for i, c := range cells {
			rows[i] = append(rows[i], c)
		}
	}
	return rows
}
