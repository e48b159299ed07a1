package report

import (
	"slices"
	"strings"
	"testing"

	"replayd/internal/measure"
	"replayd/internal/result"
)

// A page says that the load was the planned one if and only if every expected request was sent.
func TestPlannedLoad(t *testing.T) {
	for name, c := range map[string]struct {
		ledger *measure.Ledger
		picked bool
		lead   string // how the page begins
		trust  string
		says   []string // on the page
		not    []string
	}{
		"dropped": {
			ledger: &measure.Ledger{
				Expected: 400, Good: 100, Eligible: 300, Outcomes: map[measure.Outcome]int64{measure.OK: 300},
				Dropped: map[measure.DropReason]int64{measure.Overload: 90, measure.Guarded: 10},
			},
			lead:  "300 of 400 expected requests in 4 min 59 s, 100 dropped (90 overload, 10 guard); all that were sent ended ok.",
			trust: "The load was not the planned one: 100 of 400 expected requests were never sent (90 overload, 10 guard); 99 % of the sent requests were at most 100 µs late",
			says:  []string{"100 good of 400 expected; there is no SLO", "25 %"},
			not:   []string{"all ok", "The load was the planned one"},
		},
		"all sent": {
			ledger: &measure.Ledger{Expected: 300, Good: 299, Eligible: 300, Outcomes: map[measure.Outcome]int64{measure.OK: 300}},
			lead:   "300 requests in 4 min 59 s, all ok.",
			trust:  "The load was the planned one: 99 % of the requests were at most 100 µs late",
			says:   []string{"299 good of 300 expected", "99.7 %"},
			not:    []string{"ever sent"},
		},
		"not ended": {
			ledger: &measure.Ledger{Expected: 301, InFlight: 1, Good: 300, Eligible: 300, Outcomes: map[measure.Outcome]int64{measure.OK: 300}},
			lead:   "300 requests in 4 min 59 s, all ok.",
			trust:  "1 of 301 expected requests had not ended when the ledger was written; 99 % of the sent requests were at most 100 µs late",
			not:    []string{"The load was the planned one"},
		},
		"killed": {
			ledger: &measure.Ledger{
				Expected: 20, InFlight: 2, Good: 4, Eligible: 4, Outcomes: map[measure.Outcome]int64{measure.OK: 4}, Dropped: map[measure.DropReason]int64{measure.Overload: 14},
			},
			lead:  "300 requests in 4 min 59 s, all ok.",
			trust: "The load was not the planned one: 14 of 20 expected requests were never sent (overload); 99 % of the sent requests were at most 100 µs late",
			says:  []string{"The ledger counts 20 expected, 4 finished, 14 dropped (overload), 2 not ended when the ledger was written."},
			not:   []string{"The load was the planned one", "of 20 expected requests in"},
		},
		"half of the files": {
			ledger: &measure.Ledger{Expected: 600, Good: 600, Eligible: 600, Outcomes: map[measure.Outcome]int64{measure.OK: 600}},
			lead:   "300 requests in 4 min 59 s, all ok.",
			trust:  "The ledger counts other requests than are in these files; 99 % of the sent requests were at most 100 µs late",
			says:   []string{"The ledger counts 600 expected, 600 finished."},
			not:    []string{"The load was the planned one"},
		},
		"no ledger": {
			lead:  "300 requests in 4 min 59 s, all ok.",
			trust: "What was never sent is not in these files; 99 % of the sent requests were at most 100 µs late",
			says:  []string{"not known", "What was never sent is not in these files."},
			not:   []string{"The load was the planned one"},
		},
		"picked": {
			picked: true,
			lead:   "300 requests in 4 min 59 s, all ok.",
			trust:  "These are requests that were picked out of a run; 99 % of the sent requests were at most 100 µs late",
			not:    []string{"The load was the planned one", "Attainment"},
		},
	} {
		run := result.Run{Rows: steps3(100, 100, 100).rows, Ledger: c.ledger, Picked: c.picked}
		p := pageOf(run)
		trust := ""
		for _, s := range p.Sections {
			if s.Short == "Trust" {
				trust = s.Title
			}
		}
		if !strings.HasPrefix(p.Lead, c.lead) || trust != c.trust {
			t.Errorf("%s:\n%s\n%s", name, p.Lead, trust)
		}
		text := written(t, p)
		for _, said := range c.says {
			if !strings.Contains(text, said) {
				t.Errorf("%s: want %q on the page", name, said)
			}
		}
		for _, said := range c.not {
			if strings.Contains(text, said) {
				t.Errorf("%s: want no %q on the page", name, said)
			}
		}
	}
}

// Without an SLO the latencies come first, and the last tile has the ok requests of the expected ones. With an SLO the
// attainments are first.
func TestTilesBeginWithWhatIsJudged(t *testing.T) {
	run := result.Run{
		Rows: steps3(100, 100, 100).rows,
		Ledger: &measure.Ledger{
			Expected: 300, Good: 299, Eligible: 300, Outcomes: map[measure.Outcome]int64{measure.OK: 300},
		},
	}
	names := func(run result.Run) (all []string) {
		for _, tile := range pageOf(run).Tiles {
			all = append(all, tile.Name)
		}
		return all
	}
	at := slices.Index[[]string]
	without := names(run)
	i := at(without, "TTFT p50")
	if i < 0 || min(at(without, "Ok of expected"), at(without, "Prefix cache")) < i || at(without, "Attainment") >= 0 {
		t.Errorf("without an SLO: want TTFT before what was ok, and no attainment, got %q", without)
	}
	run.Ledger.Expected, run.Ledger.Dropped = 310, map[measure.DropReason]int64{measure.Overload: 10}
	if got := names(run); got[0] != "Never sent" {
		t.Errorf("want what was never sent first, got %q", got)
	}
	run.Settings.SLO = measure.SLO{{Quantity: measure.TTFT, Limit: 150}}
	got := names(run)
	if !slices.Equal(got[:3], []string{"Attainment", "Service attainment", "Never sent"}) || at(got, "Ok of expected") >= 0 {
		t.Errorf("with an SLO: want the attainments first, got %q", got)
	}
}
