package daemon

import (
	"encoding/json"
	"math"
	"time"

	"replayd/internal/canary"
	"replayd/internal/metrics"
)

// comparisonJSON is a comparison on /-/comparisons; docs/reference/file-formats.md describes it.
type comparisonJSON struct {
	Name      string    `json:"name"`
	Workload  string    `json:"workload"`
	Baseline  string    `json:"baseline"`
	Candidate string    `json:"candidate"`
	Mode      string    `json:"mode"`
	Epoch     time.Time `json:"epoch"`
	Verdict   string    `json:"verdict,omitempty"` // with mode verdict
	Reason    string    `json:"reason,omitempty"`  // while it is undecided
	Metric    string    `json:"metric,omitempty"`  // that has failed, or is the reason
	Text      string    `json:"text"`              // in words

	BlocksNeeded  *int64   `json:"blocks_needed,omitempty"`  // while it is undecided, if blocks like those so far decide
	SecondsNeeded *float64 `json:"seconds_needed,omitempty"` // that they take

	Pairs   pairsJSON             `json:"pairs"` // of this epoch
	Skipped map[canary.Skip]int64 `json:"blocks_skipped"`
	Metrics []metricJSON          `json:"metrics"`
}

type pairsJSON struct {
	Judged int64 `json:"judged"`
	Void   int64 `json:"void"`
}

// metricJSON is a metric with at least one block. Figures that are unknown are left out.
type metricJSON struct {
	Metric      string             `json:"metric"`
	Blocks      int64              `json:"blocks"` // with mode watch the latest ones, of which the figures are
	Ratio       *float64           `json:"ratio,omitempty"`
	Lower       *float64           `json:"lower,omitempty"`
	Upper       *float64           `json:"upper,omitempty"`
	Excess      *float64           `json:"excess,omitempty"`
	Tolerance   float64            `json:"tolerance"`
	Evidence    map[string]float64 `json:"evidence_log10,omitempty"` // worse, not_worse
	Correlation *float64           `json:"block_correlation,omitempty"`
	Change      *changeJSON        `json:"change,omitempty"` // with mode watch: the latest one
}

type changeJSON struct {
	Direction canary.Direction `json:"direction"` // back: it is as before
	Since     time.Time        `json:"since"`
	Found     time.Time        `json:"found"`
}

// comparisonsJSON returns the state of comparisons as a JSON list.
func comparisonsJSON(all []metrics.Compared) ([]byte, error) {
	list := make([]comparisonJSON, len(all))
	for i := range all {
		list[i] = jsonOf(&all[i])
	}
	text, err := json.MarshalIndent(list, "", "  ")
	return append(text, '\n'), err
}

func jsonOf(c *metrics.Compared) comparisonJSON {
	j := &c.Judgement
	out := comparisonJSON{
		Name: c.Name, Workload: c.Workload, Baseline: c.Baseline, Candidate: c.Candidate, Mode: string(c.Options.Mode), Epoch: c.Epoch.UTC(),
		Verdict: string(j.Verdict), Reason: string(j.Reason), Text: j.Text(c.Options),
		Pairs: pairsJSON{j.Pairs.Judged, j.Pairs.Void}, Skipped: j.Skipped, Metrics: []metricJSON{},
	}
	if j.Verdict == canary.Fail || j.Reason == canary.Dependent || j.Reason == canary.Excess {
		out.Metric = j.Metric.String()
	}
	if j.Verdict == canary.Undecided && j.More > 0 {
		seconds := (time.Duration(j.More) * j.BlockTime).Seconds()
		out.BlocksNeeded, out.SecondsNeeded = &j.More, &seconds
	}
	for m := range canary.Metrics {
		one := metricJSON{Metric: canary.Metric(m).String(), Tolerance: c.Options.ToleranceOf(canary.Metric(m))}
		if c.Options.Mode == canary.ModeWatch {
			one.watch(&j.Watch[m])
		} else {
			one.verdict(&j.Metrics[m])
		}
		if one.Blocks > 0 {
			out.Metrics = append(out.Metrics, one)
		}
	}
	return out
}

func (m *metricJSON) verdict(s *canary.MetricState) {
	m.Blocks, m.Correlation = s.Blocks, finite(s.Correlation)
	m.Evidence = map[string]float64{"worse": s.WorseLog10}
	if s.Metric.IsLatency() {
		m.Ratio, m.Upper = finite(s.Ratio), finite(s.Upper)
		if s.Lower > 0 {
			m.Lower = &s.Lower
		}
		m.Evidence["not_worse"] = s.NotWorseLog10
	} else {
		m.Excess = &s.Excess
	}
}

func (m *metricJSON) watch(s *canary.WatchState) {
	m.Blocks, m.Correlation = int64(s.Blocks), finite(s.Correlation)
	if s.Metric.IsLatency() {
		m.Ratio = finite(s.Ratio)
	} else {
		m.Excess = &s.Excess
	}
	if !s.Found.IsZero() {
		direction := s.Direction
		if direction == "" {
			direction = canary.Back
		}
		m.Change = &changeJSON{direction, s.Since, s.Found}
	}
}

// finite returns nil for a number that JSON does not have.
func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}
