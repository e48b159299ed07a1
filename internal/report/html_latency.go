package report

import (
	"fmt"
	"math"

	"replayd/internal/chart"
	"replayd/internal/measure"
	"replayd/internal/number"
	"replayd/internal/result"
	"replayd/internal/stats"
)

func (l runData) latencies() Section {
	s := Section{Short: "Latencies"}
	s.Tables = []chart.Table{l.latencyTable()}
	for _, q := range shownQuantities {
		d := l.of(q.Tag())
		if d.N() == 0 {
			continue
		}
		if s.Title == "" {
			s.Title = fmt.Sprintf("%s: half within %s, one in a hundred above %s", upper(q.short), number.Value(d.Percentile(50), "ms"), number.Value(d.Percentile(99), "ms"))
		}
		x := chart.Axis{Label: q.long, Unit: "ms"}
		histogram := chart.Histogram(fmt.Sprintf("%s lies mostly between %s and %s", upper(q.short), number.Value(d.Percentile(10), "ms"), number.Value(d.Percentile(90), "ms")), x, d.Values)
		s.Plots = append(s.Plots, histogram, boundedECDF(upper(q.short), "ok requests", x, d, l.Settings.SLO.Limit(q.Quantity)))
	}
	if d := l.of("inter_chunk_latency"); d.N() > 0 {
		x := chart.Axis{Label: "gap between content chunks", Unit: "ms"}
		s.Plots = append(s.Plots,
			chart.Histogram(fmt.Sprintf("Single gaps: the longest is %s", number.Value(d.Max(), "ms")), x, d.Values),
			chart.ECDF(fmt.Sprintf("Single gaps: 99 in 100 within %s", number.Value(d.Percentile(99), "ms")), x, chart.Series{Y: d.Values}))
	}
	return s
}

// boundedECDF plots the distribution of values, each of one thing, with a mark at the bound on them; 0: there is none.
func boundedECDF(name, things string, x chart.Axis, d stats.Distribution, bound float64) chart.Plot {
	p := chart.ECDF(fmt.Sprintf("%s: 9 of 10 within %s", name, number.Value(d.Percentile(90), x.Unit)), x, chart.Series{Y: d.Values})
	if bound > 0 {
		p.Title = fmt.Sprintf("%s: within %s for %s %% of %s", name, number.Value(bound, x.Unit), number.Digits(100*d.UpTo(bound), 3), things)
		p.Marks = []chart.Mark{{Name: "bound", At: bound, X: true}}
	}
	return p
}

func (l runData) latencyTable() chart.Table {
	t := chart.Table{Title: "Figures of ok requests, and the lateness of all sent requests"}
	t.Columns = chart.Columns("", "count", "mean", "± 95 %", "std", "min")
	percentiles := result.Percentiles([]float64{25, 50, 75, 90, 95, 99, 99.9}, l.Settings.Percentiles)
	for _, p := range percentiles {
		t.Columns = append(t.Columns, chart.Column{Name: fmt.Sprintf("p%g", p)})
	}
	t.Columns = append(t.Columns, chart.Column{Name: "max"})
	for _, m := range l.figures.Metrics {
		if m.Single || m.Of.N() == 0 {
			continue
		}
		d := m.Of
		half := math.NaN()
		if q, known := measure.QuantityOf(m.Tag); known {
			in := l.mean(q).Interval(tail)
			half = in.High - in.Value
		}
		cells := []string{fmt.Sprintf("%s (%s)", m.Name, m.Unit), number.Whole(d.N()), number.Cell(d.Mean), number.Cell(half), number.Cell(d.Std), number.Cell(d.Min())}
		for _, p := range percentiles {
			cells = append(cells, number.Cell(d.Percentile(p)))
		}
		t.Rows = append(t.Rows, append(cells, number.Cell(d.Max())))
	}
	return t
}
