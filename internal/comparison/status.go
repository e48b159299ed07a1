package comparison

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"replayd/internal/canary"
)

// A Status is the state of a comparison for pages.
type Status struct {
	Name, Workload, Baseline, Candidate string

	Options  canary.Options
	Epoch    time.Time // when the evidence began
	Epochs   int64     // with judged pairs, and the present one, since the comparison is configured as it is
	Version  string    // of the candidate that the evidence is about; "": no restart has named it
	Judgment canary.Judgment
	Counters *canary.Counters // of the name
	Pods     [2]int           // that each side addresses; 0: not known
}

// Spent says how often the chance of an error has been spent: each epoch has it anew. It is "" after one epoch, and
// of a watch, whose alarms have a rate.
func (s *Status) Spent() string {
	if s.Epochs < 2 || s.Options.Mode == canary.ModeWatch {
		return ""
	}
	return fmt.Sprintf("versions judged: %d, each with at most %.4g %%", s.Epochs, 100*s.Options.Alpha)
}

// statusJSON is a comparison on /-/comparisons; docs/reference/file-formats.md describes it.
type statusJSON struct {
	Name      string         `json:"name"`
	Workload  string         `json:"workload"`
	Baseline  string         `json:"baseline"`
	Candidate string         `json:"candidate"`
	Mode      string         `json:"mode"`
	Epoch     time.Time      `json:"epoch"`
	Pods      map[string]int `json:"pods"`              // that requests go to, by side; 0: not known yet
	Scope     canary.Scope   `json:"scope"`             // of the verdict. pair: these servers; pods: the version
	Require   canary.Scope   `json:"require,omitempty"` // of each verdict; with mode verdict
	Pair      canary.Verdict `json:"pair_verdict,omitempty"`
	PairWhy   canary.Reason  `json:"pair_reason,omitempty"`
	Epochs    int64          `json:"epochs"`
	Version   string         `json:"version,omitempty"`
	Spent     string         `json:"spent,omitempty"`   // in words, how often the chance of an error was spent
	Verdict   string         `json:"verdict,omitempty"` // with mode verdict
	Reason    string         `json:"reason,omitempty"`  // while it is undecided, or sees nothing
	Blind     string         `json:"blind,omitempty"`   // why nothing is seen of latencies at present
	Metric    string         `json:"metric,omitempty"`  // that has failed, or is the reason
	Text      string         `json:"text"`              // in words

	BlocksNeeded  *int64   `json:"blocks_needed,omitempty"`  // while it is undecided, if blocks as those so far decide
	SecondsNeeded *float64 `json:"seconds_needed,omitempty"` // that they take

	Pairs   pairsJSON             `json:"pairs"` // of this epoch
	Account accountJSON           `json:"account"`
	Skipped map[canary.Skip]int64 `json:"blocks_skipped"`
	Answers *answersJSON          `json:"answers,omitempty"`
	Metrics []metricJSON          `json:"metrics"`
	Looks   *looksJSON            `json:"looks,omitempty"`         // at the pods
	Others  map[string]*float64   `json:"other_clients,omitempty"` // share of the output tokens of each side
	Calm    *float64              `json:"calm_share,omitempty"`    // of the pairs with latencies, those that met no queue
	Wander  float64               `json:"wander"`
	Unseen  canary.Sight          `json:"unseen"` // pairs since the latest block with latencies
	Restart int64                 `json:"engine_restarts"`
	NoValue []string              `json:"without_value,omitempty"` // metrics without a block: nothing is known of them
}

type pairsJSON struct {
	Judged int64             `json:"judged"`
	Void   int64             `json:"void"`
	Voids  canary.VoidCounts `json:"void_reasons"`
	Bad    map[string]int64  `json:"bad"` // by side
}

// accountJSON is what has become of all rows since the start of replayd.
type accountJSON struct {
	Due  int64 `json:"due"` // pairs: judged, void and open
	Open int64 `json:"open"`
	pairsJSON
	Requests map[string]canary.Requests `json:"requests"` // by side
}

func pairsOf(p *canary.Pairs) pairsJSON {
	return pairsJSON{p.Judged, p.Void, p.Voids, bySide(p.Bad)}
}

func bySide[T any](v [2]T) map[string]T {
	return map[string]T{canary.Baseline.String(): v[canary.Baseline], canary.Candidate.String(): v[canary.Candidate]}
}

// metricJSON is a metric with at least one block. Figures that are unknown are left out.
type metricJSON struct {
	Metric      string             `json:"metric"`
	Blocks      int64              `json:"blocks"` // with mode watch the latest ones, of which the figures are
	Ratio       *float64           `json:"ratio,omitempty"`
	Bound       canary.Bound       `json:"ratio_bound,omitempty"` // the true ratio is less, or more, than ratio
	Lower       *float64           `json:"lower,omitempty"`
	Upper       *float64           `json:"upper,omitempty"`
	Excess      *float64           `json:"excess,omitempty"`
	ExcessUpper *float64           `json:"excess_upper,omitempty"` // a pass needs it at or below the tolerance
	AllPairs    *float64           `json:"all_pairs_ratio,omitempty"`
	Changed     *time.Time         `json:"ratio_changed,omitempty"` // so there is no interval
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

// JSON returns the state of comparisons as a JSON list.
func JSON(all []Status) ([]byte, error) {
	list := make([]statusJSON, len(all))
	for i := range all {
		list[i] = jsonOf(&all[i])
	}
	text, err := json.MarshalIndent(list, "", "  ")
	return append(text, '\n'), err
}

func jsonOf(c *Status) statusJSON {
	j := &c.Judgment
	out := statusJSON{
		Name: c.Name, Workload: c.Workload, Baseline: c.Baseline, Candidate: c.Candidate,
		Scope: j.Scope, Blind: string(j.Blind),
		Calm: finite(j.Calm), Wander: c.Options.Wander, Unseen: j.Unseen, Restart: j.Restarts,
		Mode: string(c.Options.Mode), Epoch: c.Epoch.UTC(), Epochs: c.Epochs, Version: c.Version, Spent: c.Spent(), Pods: bySide(c.Pods),
		Verdict: string(j.Verdict), Reason: string(j.Reason), Text: j.Text(c.Options),
		Account: accountJSON{
			j.Account.Due, j.Account.Open(), pairsOf(&j.Account.Pairs), bySide(j.Account.Requests),
		},
		Pairs: pairsOf(&j.Pairs), Skipped: j.Skipped, Answers: answersOf(&j.Answers), Metrics: []metricJSON{},
		NoValue: j.WithoutValue(),
	}
	switch j.Reason {
	case canary.Dependent, canary.Excess, canary.FewPairs, canary.Changed, canary.TooMuchWander:
		out.Metric = j.Metric.String()
	}
	if j.Verdict == canary.Fail {
		out.Metric = j.Metric.String()
	}
	if j.Verdict == canary.Undecided && j.More > 0 {
		out.BlocksNeeded, out.SecondsNeeded = &j.More, new((time.Duration(j.More) * j.BlockTime).Seconds())
	}
	if c.Options.Mode == canary.ModeVerdict {
		out.Require, out.Pair, out.PairWhy, out.Looks = c.Options.Require, j.Pair, j.PairWhy, looksOf(&j.Pods)
	}
	if known := bySide([2]*float64{finite(j.Others[0]), finite(j.Others[1])}); finite(j.Others[0]) != nil || finite(j.Others[1]) != nil {
		out.Others = known
	}
	for m := range canary.Metrics {
		one := metricJSON{Metric: canary.Metric(m).String(), Tolerance: c.Options.ToleranceOf(canary.Metric(m))}
		if c.Options.Mode == canary.ModeWatch {
			one.watch(&j.Watch[m])
		} else {
			one.verdict(&j.Metrics[m])
		}
		if canary.Metric(m).IsLatency() {
			one.AllPairs = finite(j.Overall[m])
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
		m.Ratio, m.Bound, m.Upper = finite(s.Ratio), s.Bound, finite(s.Upper)
		if s.Lower > 0 {
			m.Lower = &s.Lower
		}
		m.Evidence["not_worse"] = s.NotWorseLog10
		if !s.Changed.IsZero() {
			m.Changed = &s.Changed
		}
	} else {
		m.Excess, m.ExcessUpper = &s.Excess, finite(s.ExcessUpper)
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
		m.Change = &changeJSON{cmp.Or(s.Direction, canary.Back), s.Since, s.Found}
	}
}

// answersJSON are the answers of judged pairs with an answer of each side. They are not judged.
type answersJSON struct {
	Pairs     int64       `json:"pairs"`
	Text      string      `json:"text,omitempty"`         // how they differ reliably
	Ratio     *float64    `json:"length_ratio,omitempty"` // the median of pairs
	Longer    int64       `json:"longer"`                 // pairs by the candidate's answer
	Shorter   int64       `json:"shorter"`
	Baseline  answersSide `json:"baseline"`
	Candidate answersSide `json:"candidate"`
}

type answersSide struct {
	Tokens   int64            `json:"output_tokens"`
	Median   int64            `json:"median_output_tokens"`
	Finishes map[string]int64 `json:"finish_reasons"`
}

// answersOf returns nil where no pair has answers.
func answersOf(a *canary.Answers) *answersJSON {
	if a.Pairs == 0 {
		return nil
	}
	side := func(s canary.Side) answersSide {
		one := answersSide{Tokens: a.Tokens[s], Median: a.Median[s], Finishes: map[string]int64{}}
		for f, n := range a.Finishes[s] {
			if n > 0 {
				one.Finishes[canary.Finish(f).String()] = n
			}
		}
		return one
	}
	out := &answersJSON{
		Pairs: a.Pairs, Text: a.Text(), Longer: a.Longer, Shorter: a.Shorter, Ratio: finite(a.Ratio),
		Baseline: side(canary.Baseline), Candidate: side(canary.Candidate),
	}
	if out.Ratio != nil {
		*out.Ratio = math.Round(*out.Ratio*1000) / 1000 // it is known to 1 %
	}
	return out
}

// finite returns nil for a number that JSON does not have.
func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}
