package comparison

import (
	"math"

	"replayd/internal/canary"
)

// looksJSON is the answer of the looks at pods about the version.
type looksJSON struct {
	Verdict string         `json:"verdict"`
	Reason  string         `json:"reason,omitempty"`
	Metric  string         `json:"metric,omitempty"` // that has failed
	Done    int            `json:"done"`
	Valued  map[string]int `json:"pods_with_values"` // in the latest look, by side
	After   float64        `json:"after_seconds"`
	Next    *float64       `json:"next_seconds,omitempty"` // since the first pair
	Metrics []lookJSON     `json:"metrics"`
	Rank    *rankJSON      `json:"rank,omitempty"`
}

// lookJSON is a metric over pods.
type lookJSON struct {
	Metric   string  `json:"metric"`
	Estimate float64 `json:"estimate"` // candidate ÷ baseline, or excess of a share
	Lower    float64 `json:"lower"`
	Upper    float64 `json:"upper"`
	Spread   float64 `json:"spread"` // deviation between pods of one side: of a latency's natural logarithm, or of a share
}

// rankJSON is the place of the candidate's only pod.
type rankJSON struct {
	Metric string `json:"metric"`
	Slower int    `json:"slower_than"` // pods of the baseline
	Of     int    `json:"of"`
}

// looksOf returns nil where a side has one pod, so that there is nothing to say.
func looksOf(p *canary.PodsState) *looksJSON {
	if max(p.Pods[canary.Baseline], p.Pods[canary.Candidate]) <= 1 {
		return nil
	}
	out := &looksJSON{
		Verdict: string(p.Verdict), Reason: string(p.Reason), Done: p.Looks, After: p.After.Seconds(), Valued: bySide(p.Valued), Metrics: []lookJSON{},
	}
	if p.Verdict == canary.Fail {
		out.Metric = p.Metric.String()
	}
	if p.Next > 0 {
		out.Next = new(p.Next.Seconds())
	}
	for m, of := range p.Metrics {
		if !math.IsNaN(of.Estimate) {
			out.Metrics = append(out.Metrics, lookJSON{canary.Metric(m).String(), of.Estimate, of.Lower, of.Upper, of.Spread})
		}
	}
	if r := p.Rank; r.Of > 0 {
		out.Rank = &rankJSON{r.Metric.String(), r.Slower, r.Of}
	}
	return out
}
