package terminal

import (
	"fmt"
	"math"
	"time"

	"replayd/internal/canary"
)

// Comparison returns the state of a comparison as a table and a sentence, in lines of at most so many columns; 0: of any length.
func Comparison(j *canary.Judgement, o canary.Options, columns int) string {
	t := &Table{Columns: columns}
	rows := [][]string{{"metric", "blocks", "candidate worse", "ratio or excess", "interval", "evidence worse", "evidence not worse"}}
	evidence := func(log10, bound float64) string {
		return fmt.Sprintf("%.3g of %.0f", math.Pow(10, log10), math.Pow(10, bound))
	}
	for _, m := range j.Metrics {
		if m.Blocks == 0 {
			continue
		}
		row := []string{m.Metric.String(), fmt.Sprint(m.Blocks), fmt.Sprint(m.Worse)}
		if m.Metric.IsLatency() {
			row = append(row, fmt.Sprintf("%.3f", m.Ratio), span(m.Lower, m.Upper),
				evidence(m.WorseLog10, o.FailLog10()), evidence(m.NotWorseLog10, o.PassLog10()))
		} else {
			row = append(row, fmt.Sprintf("%+.2f %%", 100*m.Excess), "", evidence(m.WorseLog10, o.FailLog10()), "")
		}
		rows = append(rows, row)
	}
	if len(rows) > 1 {
		t.Rows(rows, []string{"interval", "candidate worse"})
	}
	fmt.Fprintf(t, "pairs: %d, void: %d\n", j.Pairs.Judged, j.Pairs.Void)
	fmt.Fprintf(t, "verdict: %s\n", verdict(j, o))
	return t.String()
}

func span(low, high float64) string {
	bound := func(v float64) string {
		if v == 0 || math.IsInf(v, 0) {
			return "?"
		}
		return fmt.Sprintf("%.3f", v)
	}
	return bound(low) + " to " + bound(high)
}

// verdict returns the verdict and its meaning.
func verdict(j *canary.Judgement, o canary.Options) string {
	name := j.Metric.String()
	switch j.Verdict {
	case canary.Pass:
		return fmt.Sprintf("pass: at this load no latency of the candidate is longer by more than %s, as a median; the chance that this is wrong is at most %s",
			percent(o.Tolerance), percent(o.Alpha))
	case canary.Fail:
		if j.Metric.IsLatency() {
			return fmt.Sprintf("fail: %s of the candidate is longer by more than %s; the chance that this is wrong is at most %s", name, percent(o.Tolerance), percent(o.Alpha))
		}
		return fmt.Sprintf("fail: more requests of the candidate are %s; the chance that this is wrong is at most %s", shareNames[j.Metric], percent(o.Alpha))
	}
	return "undecided: " + Undecided(j, o)
}

// Undecided returns why a comparison is undecided, and how much longer it takes.
func Undecided(j *canary.Judgement, o canary.Options) string {
	return fmt.Sprintf("%s: %s", j.Reason, missing(j, o))
}

func missing(j *canary.Judgement, o canary.Options) string {
	switch j.Reason {
	case canary.Queues:
		return "at every instant requests wait for their first token on one of the sides, so no block can end: lower the load with --speed"
	case canary.NoValues:
		return "no pair has answers from both sides"
	case canary.Dependent:
		return fmt.Sprintf("neighbouring blocks of %s are too much alike to be evidence: take a longer --min-time", j.Metric)
	case canary.Excess:
		return fmt.Sprintf("more requests of the candidate are %s than tolerated, which is not proven", shareNames[j.Metric])
	}
	switch {
	case j.BlockTime == 0:
		return fmt.Sprintf("no block has ended yet; one takes %v and %d pairs without a queue or more", o.MinTime, o.MinPairs)
	case j.More < 0:
		return "the candidate is too near to the tolerance: more blocks like these decide nothing"
	}
	return fmt.Sprintf("about %d more blocks like these decide, which take %v", j.More, (time.Duration(j.More) * j.BlockTime).Round(time.Second))
}

// shareNames are the names of the requests that a share counts.
var shareNames = map[canary.Metric]string{canary.Tail: "much slower than most", canary.Queued: "queued", canary.Bad: "bad (failed or beyond the SLO)"}

// percent formats a share: 0.05 is 5 %.
func percent(share float64) string { return fmt.Sprintf("%.4g %%", 100*share) }
