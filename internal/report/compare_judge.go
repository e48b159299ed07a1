package report

import (
	"math"

	"replayd/internal/stats"
)

// A judgement compares a figure of one run with the same figure of the first run.
type judgement struct {
	figure   comparedFigure
	from, to stats.Estimate
	by       stats.Difference // of logarithms if ratio is set
	ratio    bool
	tail     float64 // the level at which Holm's procedure judged the figure, also the level of its interval
	found    bool
}

// judge compares each run with the first. All figures of all runs are one family.
func judge(all []lookedAt) (each [][]judgement, family int) {
	var p []float64
	from := map[string]stats.Estimate{}
	for _, f := range comparedFigures {
		from[f.name] = f.estimate(all[0])
	}
	for _, l := range all[1:] {
		var row []judgement
		alike := map[quantity]float64{}
		for _, f := range comparedFigures {
			j := judgement{figure: f, from: from[f.name], to: f.estimate(l)}
			if math.IsNaN(j.from.Value) || math.IsNaN(j.to.Value) {
				continue
			}
			if j.ratio = f.of != ofOutcomes && j.from.Value > 0 && j.to.Value > 0; j.ratio {
				j.by = stats.NewDifference(j.from.Log(), j.to.Log())
			} else {
				j.by = stats.NewDifference(j.from, j.to)
			}
			alike[f.of] = max(alike[f.of], j.by.Neighbours())
			row = append(row, j)
		}
		for i := range row {
			row[i].by = row[i].by.Alike(alike[row[i].figure.of])
			p = append(p, row[i].by.P())
		}
		each = append(each, row)
	}
	tails, found := stats.Holm(tail, p)
	n := 0
	for _, row := range each {
		for i := range row {
			row[i].tail, row[i].found = tails[n], found[n]
			n++
		}
	}
	return each, n
}

// interval returns the interval of the difference, in the figure's unit.
func (j judgement) interval() stats.Interval {
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
func (j judgement) verdict() string {
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

func (j judgement) judged() bool {
	in := j.interval()
	return j.found || !math.IsInf(in.Low, 0) && !math.IsInf(in.High, 0)
}
