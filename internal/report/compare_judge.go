package report

import (
	"math"

	"replayd/internal/measure"
	"replayd/internal/result"
	"replayd/internal/stats"
)

// A judgment compares a figure of one run with the same figure of the first run.
type judgment struct {
	figure   comparedFigure
	from, to stats.Estimate
	by       stats.Difference // of logarithms if ratio is set
	ratio    bool
	tail     float64 // the level at which Holm's procedure judged the figure, also the level of its interval
	found    bool
}

// judge compares each run with the first, whose rows each run has its pairs with. All figures of all runs are one
// family. It gives all runs the same number of blocks.
func judge(all []runData) (each [][]judgment, by []result.Pairs, family int) {
	alike(all)
	var p []float64
	var judgments []*judgment
	from := map[string]stats.Estimate{}
	for _, f := range comparedFigures {
		from[f.name] = f.estimate(all[0])
	}
	for _, l := range all[1:] {
		pairs := result.NewPairs(all[0].rows, l.rows)
		by = append(by, pairs)
		row := rowByRow(all[0], pairs)
		alike := map[measure.Quantity]float64{}
		for _, f := range comparedFigures {
			j := judgment{figure: f, from: from[f.name], to: f.estimate(l)}
			if math.IsNaN(j.from.Value) || math.IsNaN(j.to.Value) {
				continue
			}
			if j.ratio = f.of != ofOutcomes && j.from.Value > 0 && j.to.Value > 0; j.ratio {
				j.by = stats.NewDifference(j.from.Log(), j.to.Log())
			} else {
				j.by = stats.NewDifference(j.from, j.to)
			}
			row = append(row, j)
		}
		for _, j := range row {
			alike[j.figure.of] = max(alike[j.figure.of], j.by.Neighbors())
		}
		for i := range row {
			row[i].by = row[i].by.Alike(alike[row[i].figure.of])
			p, judgments = append(p, row[i].by.P()), append(judgments, &row[i])
		}
		each = append(each, row)
	}
	tails, found := stats.Holm(tail, p)
	for i, j := range judgments {
		j.tail, j.found = tails[i], found[i]
	}
	return each, by, len(judgments)
}

// interval returns the interval of the difference, in the figure's unit.
func (j judgment) interval() stats.Interval {
	in := j.by.Interval(j.tail)
	if j.ratio {
		of := func(log float64) float64 {
			if math.IsInf(log, -1) {
				return log
			}
			return j.from.Value * math.Expm1(log)
		}
		in = stats.Interval{Low: of(in.Low), High: of(in.High)}
	}
	in.Value = j.to.Value - j.from.Value
	return in
}

// verdict returns the verdict in words. A figure whose interval is unbounded is too short to judge.
func (j judgment) verdict() string {
	switch {
	case j.found && (j.by.Value > 0) == j.figure.larger:
		return "better"
	case j.found:
		return "worse"
	case !j.judged():
		return "too short to judge"
	}
	return "no difference shown"
}

func (j judgment) judged() bool {
	in := j.interval()
	return j.found || !math.IsInf(in.Low, 0) && !math.IsInf(in.High, 0)
}

type comparedFigure struct {
	name, unit string
	larger     bool             // a larger value is better
	headline   bool             // shown in the sentence at the top
	of         measure.Quantity // figures of one quantity share the correlation of neighboring blocks
	estimate   func(l runData) stats.Estimate
}

// The figures that measure no quantity of a request, and those of pairs of rows.
const (
	ofThroughput = measure.NumQuantities + iota
	ofOutcomes
	ofRows
)

func meanOf(q measure.Quantity) func(runData) stats.Estimate {
	return func(l runData) stats.Estimate { return l.mean(q) }
}

func percentileOf(q measure.Quantity, p float64) func(runData) stats.Estimate {
	return func(l runData) stats.Estimate { return l.percentile(l.ok, q, l.of(q.Tag()), p) }
}

var comparedFigures = []comparedFigure{
	{
		"Requests, ok", "requests/s", true, false, ofThroughput,
		func(l runData) stats.Estimate { return l.rate(func(result.Row) float64 { return 1 }) },
	},
	{"Output", "tokens/s", true, true, ofThroughput, outputRate},
	{"Output per user", "tokens/s", true, false, measure.TPOT, perUser},
	{"TTFT mean", "ms", false, false, measure.TTFT, meanOf(measure.TTFT)},
	{"TTFT p50", "ms", false, true, measure.TTFT, percentileOf(measure.TTFT, 50)},
	{"TTFT p90", "ms", false, false, measure.TTFT, percentileOf(measure.TTFT, 90)},
	{"TTFT p99", "ms", false, true, measure.TTFT, percentileOf(measure.TTFT, 99)},
	{"ITL mean", "ms", false, false, measure.TPOT, meanOf(measure.TPOT)},
	{"ITL p50", "ms", false, true, measure.TPOT, percentileOf(measure.TPOT, 50)},
	{"ITL p99", "ms", false, false, measure.TPOT, percentileOf(measure.TPOT, 99)},
	{"Latency mean", "ms", false, false, measure.E2E, meanOf(measure.E2E)},
	{"Latency p50", "ms", false, true, measure.E2E, percentileOf(measure.E2E, 50)},
	{"Latency p99", "ms", false, false, measure.E2E, percentileOf(measure.E2E, 99)},
	{"Failed", "%", false, true, ofOutcomes, func(l runData) stats.Estimate {
		return l.share(measure.Outcome.Failed).Times(100)
	}},
	{"Lateness p99", "ms", false, false, measure.Lateness, func(l runData) stats.Estimate {
		return l.percentile(l.rows, measure.Lateness, l.of("lateness"), 99)
	}},
}

// differenceUnit is the unit of a difference: percentages differ by points.
func (f comparedFigure) differenceUnit() string {
	if f.unit == "%" {
		return "points"
	}
	return f.unit
}

func (f comparedFigure) interval(l runData) stats.Interval {
	if f.of == ofOutcomes {
		return f.estimate(l).Share(len(l.rows))
	}
	return f.estimate(l).Interval(tail)
}

func outputRate(l runData) stats.Estimate {
	return l.rate(func(r result.Row) float64 { return float64(r.Output) })
}

// perUser estimates the output of one user in tokens/s: Σ output tokens after the first chunk ÷ Σ (last content − first content).
func perUser(l runData) stats.Estimate {
	return stats.NewEstimate(l.cut(l.ok, started, func(r result.Row) (float64, float64) {
		tokens := float64(r.Output - max(1, r.Opening))
		return tokens, tokens * r.ITL / 1e3
	}))
}
