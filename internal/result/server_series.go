package result

import (
	"math"
	"time"

	"replayd/internal/stats"
)

// A BesideKind is how the values of a series are to be read.
type BesideKind string

// Kinds of series.
const (
	Counter BesideKind = "counter" // it only grows, and begins at 0 again when its process does
	Gauge   BesideKind = "gauge"
)

// ServerSeries is one series that the server or a GPU counted during a run. Times and Values belong
// together, in order of time.
type ServerSeries struct {
	Source string            // where it was read: the page's URL, or the name of a GPU source
	Name   string            // of the series
	Help   string            // what it is; "" when not known
	Unit   string            // seconds, tokens and so on; "" when not known
	Labels map[string]string // of the series
	Kind   BesideKind
	GPU    bool // it is of a GPU: labels gpu, uuid, model_name, hostname

	Times  []time.Time
	Values []float64
}

// SeriesStatistics are the figures of one engine or GPU series.
type SeriesStatistics struct {
	Total float64            // growth of a counter; counts between the last scrape before a reset and the reset are lost
	Avg   float64            // of a gauge; of a counter Total over the time from the first to the last value, per second
	Of    stats.Distribution // of a gauge; of a counter the rates between two values
}

// Statistics computes what a series came to. False: there are not enough values, one of a gauge and two of a counter with time
// between them.
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
		if grown < 0 { // as Prometheus' rate has it: after a reset it grew from 0
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
