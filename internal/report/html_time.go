package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"replayd/internal/chart"
	"replayd/internal/number"
	"replayd/internal/stats"
)

// Bins of time: perBin is the target number of requests in a bin of percentiles; percentBins and throughBins cap the
// number of bins.
const (
	perBin       = 40
	percentBins  = 90
	throughBins  = 120
	fewestBins   = 8
	fewestBinned = 20 // the fewest requests for plots over time
)

// timeBin returns a round width in seconds that cuts a span into at most most bins.
func timeBin(span float64, most int) float64 {
	return chart.NiceStep(max(span, 1e-6)/float64(most), "s")
}

func (l runData) overTime() Section {
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
		word, _, _ := strings.Cut(plot.Title, ":")
		word, _, _ = strings.Cut(word, " (")
		words = append(words, word)
		s.Plots = append(s.Plots, plot)
	}
	if len(s.Plots) > 0 {
		s.Title = "Over time: " + strings.Join(words, "; ")
		s.Plots[len(s.Plots)-1].Note = fmt.Sprintf("Percentiles of the ok requests sent in each %s. The p99 of fewer than 100 requests is close to their maximum. The trend is judged by %d blocks of equal time.", number.Value(width, "s"), l.blocks)
	}
	return s
}

func (l runData) bands(q shownQuantity, width float64) chart.Plot {
	n := int(l.lastSent()/width) + 1
	values := make([][]float64, n)
	for _, r := range l.ok {
		if v := r.Value(q.Quantity); !math.IsNaN(v) {
			bin := min(n-1, max(0, int(l.at(r.Start)/width)))
			values[bin] = append(values[bin], v)
		}
	}
	x := make([]float64, n)
	lines := [3][]float64{}
	t := &chart.Table{Columns: chart.Columns("from", "requests", "p50", "p90", "p99", "max")}
	known := 0
	for i, bin := range values {
		x[i] = (float64(i) + 0.5) * width
		d := stats.NewDistribution(bin)
		known += d.N()
		cells := []string{number.Value(float64(i)*width, "s"), number.Whole(d.N())}
		for k, p := range []float64{50, 90, 99} {
			lines[k] = append(lines[k], d.Percentile(p))
			cells = append(cells, number.Value(d.Percentile(p), "ms"))
		}
		t.Rows = append(t.Rows, append(cells, number.Value(d.Max(), "ms")))
	}
	if known == 0 {
		return chart.Plot{}
	}
	spread := stats.NewDistribution(slices.Concat(lines[0], lines[2]))
	return chart.Plot{
		Title: l.drift(q), X: chart.Axis{Label: "time of sending", Unit: "s", Ends: [2]float64{0, float64(n) * width}},
		Y: chart.Axis{Label: q.long, Unit: "ms", Log: spread.Min() > 0 && spread.Max() > 15*spread.Min()},
		Series: []chart.Series{
			{Kind: chart.Area, X: x, Y: lines[2], Low: lines[0]},
			{Name: "p50", X: x, Y: lines[0], Ramp: 1, Kind: chart.Line},
			{Name: "p90", X: x, Y: lines[1], Ramp: 2, Kind: chart.Line},
			{Name: "p99", X: x, Y: lines[2], Ramp: 3, Kind: chart.Line},
		},
		Table: t,
	}
}

// lastSent is the time of the last send in seconds since the first.
func (l runData) lastSent() float64 {
	last := 0.0
	for _, r := range l.rows {
		last = max(last, l.at(r.Start))
	}
	return last
}

// trends is the number of comparisons behind the trends of one page: each pair of thirds, for each latency.
var trends = 3 * len(shownQuantities)

// drift describes the trend of a latency's median over thirds of the run, judged by blocks.
func (l runData) drift(q shownQuantity) string {
	var thirds []stats.Estimate
	n := 0
	for k := range 3 {
		third := l
		third.seconds = l.lastSent() / 3
		third.zero = l.zero + int64(float64(k)*third.seconds*1e9)
		third.blocks, third.ok = max(1, l.blocks/3), nil
		var values []float64
		for _, r := range l.ok {
			if v := r.Value(q.Quantity); min(2, int(l.at(r.Start)/third.seconds)) == k && !math.IsNaN(v) {
				third.ok, values = append(third.ok, r), append(values, v)
			}
		}
		if len(values) == 0 {
			return upper(q.short) + " over time"
		}
		n += len(values)
		thirds = append(thirds, third.percentile(third.ok, q.Quantity, chart.Distribution(values), 50))
	}
	says := fmt.Sprintf("%s has no significant trend (%s)", upper(q.short), number.Count(n, "request"))
	switch a, b, whole := moved(thirds[0], thirds[1]), moved(thirds[1], thirds[2]), moved(thirds[0], thirds[2]); {
	case l.blocks < fewestBlocks:
		says = upper(q.short) + " is too short to judge"
	case a > 0 && b < 0:
		says = upper(q.short) + " rises, then falls"
	case a < 0 && b > 0:
		says = upper(q.short) + " falls, then rises"
	case a+b > 0, a+b == 0 && whole > 0:
		says = upper(q.short) + " rises"
	case a+b < 0, whole < 0:
		says = upper(q.short) + " falls"
	}
	return fmt.Sprintf("%s: p50 of each third of the run: %s, %s, %s", says, number.Value(thirds[0].Value, "ms"), number.Value(thirds[1].Value, "ms"), number.Value(thirds[2].Value, "ms"))
}

// moved returns 1 if b is significantly larger than a by at least 5 %, −1 if it is smaller by as much, otherwise 0.
func moved(a, b stats.Estimate) int {
	d := stats.NewDifference(a, b)
	if !d.Interval(tail/float64(trends)).Apart() || math.Abs(d.Value) < 0.05*a.Value {
		return 0
	}
	return cmp.Compare(d.Value, 0)
}
