package result

import (
	"math"
	"time"

	"replayd/internal/stats"
)

// A SeriesKind says how to read the values of a series.
type SeriesKind string

// Kinds of series.
const (
	Counter SeriesKind = "counter" // only grows, and restarts at 0 with its process
	Gauge   SeriesKind = "gauge"
)

// ServerSeries is one series of the server or a GPU during a run. Values[i] was read at Times[i]; Times ascends.
type ServerSeries struct {
	Source string            // URL of the page, or the name of a GPU source
	Name   string            // of the series
	Help   string            // help text; "" if not known
	Unit   string            // seconds, tokens and so on; "" if not known
	Labels map[string]string // of the series
	Kind   SeriesKind
	GPU    bool // a GPU's series, with labels gpu, uuid, model_name, hostname

	Times  []time.Time
	Values []float64
}

// SeriesStatistics are the figures of one engine or GPU series.
type SeriesStatistics struct {
	Total float64            // growth of a counter; counts between the last scrape before a reset and the reset are lost
	Avg   float64            // mean of a gauge; Total of a counter per second, from the first to the last value
	Of    stats.Distribution // values of a gauge; rates of a counter between two values
}

// Statistics computes the figures of a series. It returns false if there are too few values: a gauge needs one, a
// counter two with time between them.
func (b ServerSeries) Statistics() (f SeriesStatistics, ok bool) {
	n := min(len(b.Times), len(b.Values))
	if n == 0 {
		return f, false
	}
	if b.Kind == Gauge {
		f.Of = stats.NewDistribution(append([]float64(nil), b.Values[:n]...))
		f.Avg = f.Of.Mean
		return f, f.Of.N() > 0
	}
	span := b.Times[n-1].Sub(b.Times[0])
	if span <= 0 {
		return f, false
	}
	var rates []float64
	for i := 1; i < n; i++ {
		grown := b.Values[i] - b.Values[i-1]
		if grown < 0 { // a reset; as in Prometheus' rate, the counter grew from 0
			grown = b.Values[i]
		}
		if math.IsNaN(grown) {
			continue
		}
		f.Total += grown
		if between := b.Times[i].Sub(b.Times[i-1]).Seconds(); between > 0 {
			rates = append(rates, grown/between)
		}
	}
	f.Avg, f.Of = f.Total/span.Seconds(), stats.NewDistribution(rates)
	return f, f.Of.N() > 0
}
