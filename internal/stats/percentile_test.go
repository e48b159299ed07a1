package stats

import (
	"math"
	"testing"
)

// Figures by numpy 2.4: numpy.percentile of the same values.
func TestPercentileAsNumpy(t *testing.T) {
	values := []float64{0.2, 1.5, 3.1, 4.4, 6.125, 7.7, 9.25}
	at := func(rank int64) float64 { return values[rank] }
	for p, want := range map[float64]float64{
		0: 0.2, 1: 0.278, 25: 2.3, 33.3: 3.0967999999999996, 50: 4.4, 75: 6.9125, 90: 8.32, 99: 9.157, 99.9: 9.2407, 100: 9.25,
	} {
		if got := Percentile(p, int64(len(values)), at); got != want {
			t.Errorf("p%v = %v, want %v", p, got, want)
		}
	}
	if got := Percentile(50, 0, at); !math.IsNaN(got) {
		t.Errorf("of nothing: want NaN, got %v", got)
	}
	if got := PercentileOf(50, []int64{9, 2, 4, 3}); got != 3.5 {
		t.Errorf("median: want 3.5, got %v", got)
	}
}
