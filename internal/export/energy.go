package export

import (
	"time"

	"replayd/internal/measure"
	"replayd/internal/result"
)

// joulesPerToken returns the energy that the GPUs drew from the first send of the run to its last end, by the output
// tokens of its ok requests. It returns false if one of the two is not known.
func joulesPerToken(r result.Run) (float64, bool) {
	tokens := 0
	for i := range r.Rows {
		if row := &r.Rows[i]; row.Phase == measure.Profiling && row.Outcome == measure.OK {
			tokens += row.Output
		}
	}
	first, last := r.Span()
	drawn, known := joules(r.ServerSeries, first, last)
	return drawn / float64(tokens), known && tokens > 0
}

// joules returns the energy that the GPUs drew from first to last, by their energy counters, or by the mean of their
// power where a GPU has no counter. It returns false without GPUs, or if a counter was reset.
func joules(rows []result.ServerSeries, first, last time.Time) (sum float64, known bool) {
	counted := map[string]bool{}
	for _, b := range rows {
		if n := min(len(b.Times), len(b.Values)); b.Name == "replayd_gpu_energy_joules_total" && n >= 2 {
			drawn := valueAt(b, last) - valueAt(b, first)
			if drawn < 0 {
				return 0, false
			}
			sum, known, counted[deviceOf(b)] = sum+drawn, true, true
		}
	}
	for _, b := range rows {
		if f, ok := b.Statistics(); b.Name == "replayd_gpu_power_watts" && ok && !counted[deviceOf(b)] {
			sum, known = sum+f.Avg*last.Sub(first).Seconds(), true
		}
	}
	return sum, known
}

// deviceOf identifies the device of a series.
func deviceOf(b result.ServerSeries) string {
	return labelText(map[string]string{"gpu": b.Labels["gpu"], "uuid": b.Labels["uuid"], "hostname": b.Labels["hostname"]})
}

// valueAt returns the value of a counter with two readings or more at an instant, on the line through the nearest two.
func valueAt(b result.ServerSeries, at time.Time) float64 {
	i := 1
	for i < len(b.Times)-1 && b.Times[i].Before(at) {
		i++
	}
	share := float64(at.Sub(b.Times[i-1])) / float64(b.Times[i].Sub(b.Times[i-1]))
	return b.Values[i-1] + share*(b.Values[i]-b.Values[i-1])
}
