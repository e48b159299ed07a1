package report

import (
	"fmt"
	"slices"
	"time"

	"replayd/internal/canary"
	"replayd/internal/chart"
	"replayd/internal/number"
)

// instant formats an instant so that it can be found in a log.
func instant(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

func (c Canary) requestID(side canary.Side, p *canary.Pair) string {
	return c.Workloads[side] + "/" + p.ID
}

// slowest lists the pairs whose candidate took longest against its baseline: those of the metric in question, and folded those of the others.
func (c Canary) slowest() Section {
	s := Section{Short: "Slowest pairs", Text: []string{
		"Calm pairs, which met no queue, by how much longer the candidate took. Both ids are the X-Request-Id of the request, as in the engines' logs.",
	}}
	order := []canary.Metric{canary.E2E, canary.TTFT, canary.TPOT}
	if at := slices.Index(order, c.Metric); c.Verdict == canary.Fail && at > 0 {
		order[0], order[at] = order[at], order[0]
	}
	for _, m := range order {
		pairs := c.History.Slowest[m]
		if len(pairs) == 0 {
			continue
		}
		t := chart.Table{Title: "By " + names[m], Folded: s.Title != "", Columns: chart.Columns("row", "candidate",
			"baseline", "longer by", "ratio", "candidate's request", "baseline's request", "candidate's was sent")}
		for i := range pairs {
			p := &pairs[i]
			base, cand := p.Requests[canary.Baseline].Latency(m), p.Requests[canary.Candidate].Latency(m)
			t.Rows = append(t.Rows, []string{
				p.ID, number.Latency(cand), number.Latency(base), number.Latency(cand - base), fmt.Sprintf("%.3f", float64(cand)/float64(base)),
				c.requestID(canary.Candidate, p), c.requestID(canary.Baseline, p), instant(p.Requests[canary.Candidate].Sent),
			})
		}
		if s.Title == "" {
			s.Title = fmt.Sprintf("Slowest pairs: row %s took %s, %s on the baseline (%s)", t.Rows[0][0], t.Rows[0][1], t.Rows[0][2], names[m])
		}
		s.Tables = append(s.Tables, t)
	}
	return s
}

func (c Canary) bad() Section {
	s := Section{Short: "Bad requests"}
	for _, side := range []canary.Side{canary.Candidate, canary.Baseline} {
		pairs := c.History.Bad[side]
		if len(pairs) == 0 {
			continue
		}
		other := 1 - side
		t := chart.Table{Title: fmt.Sprintf("First bad requests of the %v", side), Columns: chart.Columns("row", "<why",
			fmt.Sprintf("<on the %v", other), "request", fmt.Sprintf("request of the %v", other), "planned")}
		for i := range pairs {
			p := &pairs[i]
			beside := "good"
			if p.Requests[other].Bad {
				beside = p.Requests[other].Why
			}
			t.Rows = append(t.Rows, []string{p.ID, p.Requests[side].Why, beside, c.requestID(side, p), c.requestID(other, p), instant(p.At)})
		}
		s.Title = "Bad requests, which failed or missed the SLO"
		s.Tables = append(s.Tables, t)
	}
	return s
}
