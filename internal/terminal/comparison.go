package terminal

import (
	"fmt"
	"math"

	"replayd/internal/canary"
)

// Comparison returns the state of a comparison as a table and a sentence, in lines of at most so many columns; 0: of any length.
func Comparison(j *canary.Judgement, o canary.Options, columns int) string {
	t := &Table{Columns: columns}
	if rows := ComparisonRows(j, o); len(rows) > 1 {
		t.Rows(rows, []string{"candidate worse", "blocks", "interval"})
	}
	fmt.Fprintf(t, "pairs: %d, void: %d\n", j.Pairs.Judged, j.Pairs.Void)
	t.Wrapped("", "verdict: "+j.Text(o), 2)
	return t.String()
}

// ComparisonRows returns the headings of a comparison's table and a row for each metric with values.
func ComparisonRows(j *canary.Judgement, o canary.Options) [][]string {
	rows := [][]string{{"metric", "blocks", "candidate worse", "ratio or excess", "interval", "evidence worse", "evidence not worse"}}
	evidence := func(log10, bound float64) string {
		return fmt.Sprintf("%.3g of %.0f", math.Pow(10, log10), math.Pow(10, bound))
	}
	for _, m := range j.Metrics {
		if m.Blocks == 0 {
			continue
		}
		row := []string{m.Metric.String(), fmt.Sprint(m.Blocks), fmt.Sprint(m.Worse), RatioOrExcess(&m), "", evidence(m.WorseLog10, o.FailLog10()), ""}
		if m.Metric.IsLatency() {
			row[4], row[6] = Interval(&m), evidence(m.NotWorseLog10, o.PassLog10())
		}
		rows = append(rows, row)
	}
	return rows
}

// RatioOrExcess formats the ratio of a latency and the excess of a share.
func RatioOrExcess(m *canary.MetricState) string {
	switch {
	case m.Blocks == 0:
		return "–"
	case m.Metric.IsLatency():
		return fmt.Sprintf("%.3f", m.Ratio)
	}
	return fmt.Sprintf("%+.2f %%", 100*m.Excess)
}

// Interval formats the interval of a latency's ratio.
func Interval(m *canary.MetricState) string {
	bound := func(v float64) string {
		if v == 0 || math.IsInf(v, 0) {
			return "?"
		}
		return fmt.Sprintf("%.3f", v)
	}
	return bound(m.Lower) + " to " + bound(m.Upper)
}
