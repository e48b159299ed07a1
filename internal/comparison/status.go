package comparison

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"replayd/internal/canary"
	"replayd/internal/number"
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

// JSON returns the state of comparisons as a JSON list: that of /-/comparisons, which docs/reference/file-formats.md
// describes. Figures that are unknown are left out.
func JSON(all []Status) ([]byte, error) {
	list := make([]number.Object, len(all))
	for i := range all {
		list[i] = jsonOf(&all[i])
	}
	text, err := json.MarshalIndent(list, "", "  ")
	return append(text, '\n'), err
}

func jsonOf(c *Status) number.Object {
	j := &c.Judgment
	out := number.Object{
		"name", c.Name, "workload", c.Workload, "baseline", c.Baseline, "candidate", c.Candidate,
		"mode", c.Options.Mode, "epoch", c.Epoch.UTC(), "pods", bySide(c.Pods), "scope", j.Scope,
	}
	if c.Options.Mode == canary.ModeVerdict {
		addText(&out, "require", c.Options.Require)
		addText(&out, "pair_verdict", j.Pair)
		addText(&out, "pair_reason", j.PairWhy)
	}
	out.Add("epochs", c.Epochs)
	addText(&out, "version", c.Version)
	addText(&out, "spent", c.Spent())
	addText(&out, "verdict", j.Verdict)
	addText(&out, "reason", j.Reason)
	addText(&out, "blind", j.Blind)
	about := []canary.Reason{canary.Dependent, canary.Excess, canary.FewPairs, canary.Changed, canary.TooMuchWander}
	if j.Verdict == canary.Fail || slices.Contains(about, j.Reason) {
		out.Add("metric", j.Metric.String())
	}
	out.Add("text", j.Text(c.Options))
	if j.Verdict == canary.Undecided && j.More > 0 {
		takes := time.Duration(j.More) * j.BlockTime
		out = append(out, "blocks_needed", j.More, "seconds_needed", takes.Seconds())
	}
	account := append(number.Object{"due", j.Account.Due, "open", j.Account.Open()}, pairsOf(&j.Account.Pairs)...)
	account.Add("requests", bySide(j.Account.Requests))
	out = append(out, "pairs", pairsOf(&j.Pairs), "account", account, "blocks_skipped", j.Skipped)
	out.AddKnown(j.Answers.Pairs > 0, "answers", answersOf(&j.Answers))
	metrics := []number.Object{}
	for _, m := range canary.Metrics {
		switch {
		case c.Options.Mode == canary.ModeWatch && j.Watch[m].Blocks > 0:
			metrics = append(metrics, watchOf(c, &j.Watch[m]))
		case c.Options.Mode != canary.ModeWatch && j.Metrics[m].Blocks > 0:
			metrics = append(metrics, verdictOf(c, &j.Metrics[m]))
		}
	}
	out.Add("metrics", metrics)
	// Where a side has one pod, there is nothing to say about a version.
	manyPods := max(j.Pods.Pods[canary.Baseline], j.Pods.Pods[canary.Candidate]) > 1
	out.AddKnown(c.Options.Mode == canary.ModeVerdict && manyPods, "looks", looksOf(&j.Pods))
	if base, cand := finite(j.Others[canary.Baseline]), finite(j.Others[canary.Candidate]); base != nil || cand != nil {
		out.Add("other_clients", bySide([2]*float64{base, cand}))
	}
	out = append(out, "calm_share", j.Calm, "wander", c.Options.Wander, "unseen", j.Unseen, "engine_restarts", j.Restarts)
	without := j.WithoutValue()
	out.AddKnown(len(without) > 0, "without_value", without)
	return out
}

func addText[T ~string](o *number.Object, key string, text T) { o.AddKnown(text != "", key, text) }

func pairsOf(p *canary.Pairs) number.Object {
	return number.Object{"judged", p.Judged, "void", p.Void, "void_reasons", p.Voids, "bad", bySide(p.Bad)}
}

func bySide[T any](v [2]T) map[string]T {
	return map[string]T{canary.Baseline.String(): v[canary.Baseline], canary.Candidate.String(): v[canary.Candidate]}
}

func verdictOf(c *Status, s *canary.MetricState) number.Object {
	out := number.Object{"metric", s.Metric.String(), "blocks", s.Blocks}
	evidence := map[string]float64{"worse": s.WorseLog10}
	if s.Metric.IsLatency() {
		evidence["not_worse"] = s.NotWorseLog10
		out.Add("ratio", s.Ratio)
		addText(&out, "ratio_bound", s.Bound)
		out.AddKnown(s.Lower > 0, "lower", s.Lower)
		out = append(out, "upper", s.Upper, "all_pairs_ratio", c.Judgment.Overall[s.Metric])
		out.AddKnown(!s.Changed.IsZero(), "ratio_changed", s.Changed)
	} else {
		out = append(out, "excess", s.Excess, "excess_upper", s.ExcessUpper)
	}
	return append(out, "tolerance", c.Options.ToleranceOf(s.Metric), "evidence_log10", evidence,
		"block_correlation", s.Correlation)
}

// watchOf has the figures of the latest blocks, and the latest change. The direction back says that it is as before.
func watchOf(c *Status, s *canary.WatchState) number.Object {
	out := number.Object{"metric", s.Metric.String(), "blocks", s.Blocks}
	if s.Metric.IsLatency() {
		out = append(out, "ratio", s.Ratio, "all_pairs_ratio", c.Judgment.Overall[s.Metric])
	} else {
		out.Add("excess", s.Excess)
	}
	out = append(out, "tolerance", c.Options.ToleranceOf(s.Metric), "block_correlation", s.Correlation)
	out.AddKnown(!s.Found.IsZero(), "change",
		number.Object{"direction", cmp.Or(s.Direction, canary.Back), "since", s.Since, "found", s.Found})
	return out
}

// answersOf has the answers of judged pairs with an answer of each side. They are not judged.
func answersOf(a *canary.Answers) number.Object {
	out := number.Object{"pairs", a.Pairs}
	addText(&out, "text", a.Text())
	out.Add("length_ratio", math.Round(a.Ratio*1000)/1000) // it is known to 1 %
	out = append(out, "longer", a.Longer, "shorter", a.Shorter)
	for side, tokens := range a.Tokens {
		finishes := map[string]int64{}
		for f, n := range a.Finishes[side] {
			if n > 0 {
				finishes[canary.Finish(f).String()] = n
			}
		}
		out.Add(canary.Side(side).String(), number.Object{
			"output_tokens", tokens, "median_output_tokens", a.Median[side], "finish_reasons", finishes,
		})
	}
	return out
}

func looksOf(p *canary.PodsState) number.Object {
	out := number.Object{"verdict", p.Verdict}
	addText(&out, "reason", p.Reason)
	if p.Verdict == canary.Fail {
		out.Add("metric", p.Metric.String())
	}
	out = append(out, "done", p.Looks, "pods_with_values", bySide(p.Valued), "after_seconds", p.After.Seconds())
	out.AddKnown(p.Next > 0, "next_seconds", p.Next.Seconds())
	metrics := []number.Object{}
	for m, of := range p.Metrics {
		if !math.IsNaN(of.Estimate) {
			metrics = append(metrics, number.Object{
				"metric", canary.Metric(m).String(), "estimate", of.Estimate, "lower", of.Lower, "upper", of.Upper,
				"spread", of.Spread,
			})
		}
	}
	out.Add("metrics", metrics)
	r := p.Rank
	out.AddKnown(r.Of > 0, "rank", number.Object{"metric", r.Metric.String(), "slower_than", r.Slower, "of", r.Of})
	return out
}

// finite returns nil for a number that JSON does not have.
func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}
