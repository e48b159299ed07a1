package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"replayd/internal/stats"
)

// Bins of time: about so many requests in each for percentiles, and at most so many bins.
const (
	perBin       = 40
	percentBins  = 90
	throughBins  = 120
	fewestBins   = 8
	fewestBinned = 20 // requests from which on there is something to see over time
)

// timeBin is a round width in seconds that cuts a span into at most so many bins.
func timeBin(span float64, most int) float64 {
	return niceStep(max(span, 1e-6)/float64(most), "s")
}

// overTime are percentiles of each latency for bins of when the requests were sent.
func (l lookedAt) overTime() Section {
	s := Section{Short: "Over time"}
	if len(l.ok) < fewestBinned || l.seconds <= 0 {
		return s
	}
	width := timeBin(l.lastSent(), min(percentBins, max(fewestBins, len(l.ok)/perBin)))
	var words []string
	for _, q := range shownQuantities {
		plot := l.bands(q, width)
		if len(plot.Series) == 0 {
			continue
		}
		word, _, _ := strings.Cut(plot.Title, ":") // before the figures
		words = append(words, word)
		s.Plots = append(s.Plots, plot)
	}
	if len(s.Plots) > 0 {
		s.Title = "Over time: " + strings.Join(words, "; ")
		s.Plots[len(s.Plots)-1].Note = fmt.Sprintf("Percentiles of the ok requests that were sent within the same %s. A p99 of fewer than 100 requests is near their worst.", Value(width, "s"))
	}
	return s
}

// bands are p50, p90 and p99 of a latency over time.
func (l lookedAt) bands(q shownQuantity, width float64) Plot {
	n := int(l.lastSent()/width) + 1
	values := make([][]float64, n)
	for _, r := range l.ok {
		if v := q.value(r); !math.IsNaN(v) {
			bin := min(n-1, max(0, int(l.at(r.Start)/width)))
			values[bin] = append(values[bin], v)
		}
	}
	x := make([]float64, n)
	lines := [3][]float64{}
	t := &PageTable{Columns: []Column{{Name: "from", Text: true}, {Name: "requests"}, {Name: "p50"}, {Name: "p90"}, {Name: "p99"}, {Name: "max"}}}
	known := 0
	for i, bin := range values {
		x[i] = (float64(i) + 0.5) * width
		d := stats.NewDistribution(bin)
		known += d.N()
		cells := []string{Value(float64(i)*width, "s"), thousands(float64(d.N()), 0)}
		for k, p := range []float64{50, 90, 99} {
			lines[k] = append(lines[k], d.Percentile(p))
			cells = append(cells, Value(d.Percentile(p), "ms"))
		}
		t.Rows = append(t.Rows, append(cells, Value(d.Max(), "ms")))
	}
	if known == 0 {
		return Plot{}
	}
	spread := stats.NewDistribution(slices.Concat(lines[0], lines[2]))
	return Plot{
		Title: l.drift(q), X: Axis{Label: "time of sending", Unit: "s", Ends: [2]float64{0, float64(n) * width}},
		Y: Axis{Label: q.long, Unit: "ms", Log: spread.Min() > 0 && spread.Max() > 15*spread.Min()},
		Series: []Series{
			{Kind: Area, X: x, Y: lines[2], Low: lines[0]},
			{Name: "p50", X: x, Y: lines[0], Ramp: 1, Kind: Line},
			{Name: "p90", X: x, Y: lines[1], Ramp: 2, Kind: Line},
			{Name: "p99", X: x, Y: lines[2], Ramp: 3, Kind: Line},
		},
		Table: t,
	}
}

// lastSent is when the last request was sent, in seconds since the first.
func (l lookedAt) lastSent() float64 {
	last := 0.0
	for _, r := range l.rows {
		last = max(last, l.at(r.Start))
	}
	return last
}

// drift says how the median of a latency goes over thirds of the requests, by their intervals.
func (l lookedAt) drift(q shownQuantity) string {
	values := l.valuesOf(q.value)
	third := len(values) / 3
	if third < fewestBinned {
		return upper(q.short) + " over time"
	}
	first := percentileInterval(distribution(values[:third]), 50)
	middle := percentileInterval(distribution(values[third:2*third]), 50)
	last := percentileInterval(distribution(values[2*third:]), 50)
	word := "is steady"
	switch a, b := moved(first, middle), moved(middle, last); {
	case a > 0 && b < 0:
		word = "rises, then falls"
	case a < 0 && b > 0:
		word = "falls, then rises"
	case a+b > 0, a+b == 0 && moved(first, last) > 0:
		word = "rises"
	case a+b < 0, moved(first, last) < 0:
		word = "falls"
	}
	return fmt.Sprintf("%s %s: p50 %s, %s, %s by thirds of the requests", upper(q.short), word, Value(first.Value, "ms"), Value(middle.Value, "ms"), Value(last.Value, "ms"))
}

// moved is 1 where b is shown to be more than a, by at least 5 %, −1 where it is less, else 0.
func moved(a, b interval) int {
	if d := difference(b, a); !d.apart() || math.Abs(d.Value) < 0.05*a.Value {
		return 0
	}
	return cmp.Compare(b.Value, a.Value)
}
