package report

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"replayd/internal/chart"
)

// The tokens of an answer from 0.5 s to 2.5 s fall into bins of one second: a quarter, a half, a quarter. Tokens after
// the last bin count in the last bin, so the sum stays the same.
func TestSpread(t *testing.T) {
	bins := make([]float64, 4)
	spread(bins, 1, 0.5, 2.5, 8)
	if fmt.Sprint(bins) != "[2 4 2 0]" {
		t.Errorf("%v", bins)
	}
	bins = make([]float64, 2)
	spread(bins, 1, 1, 5, 8)
	spread(bins, 1, 0.3, 0.3, 1)
	if fmt.Sprint(bins) != "[1 8]" {
		t.Errorf("%v", bins)
	}
}

// Least squares by hand: y = 3 + 2x is a perfect line; (0, 0), (1, 1), (2, 0) has no slope.
func TestLeastSquares(t *testing.T) {
	slope, r2 := leastSquares([]float64{0, 1, 2, 5}, []float64{3, 5, 7, 13})
	within(t, "slope", slope, 2, 1e-12)
	within(t, "r²", r2, 1, 1e-12)
	if slope, r2 := leastSquares([]float64{0, 1, 2}, []float64{0, 1, 0}); slope != 0 || r2 != 0 {
		t.Errorf("%v, %v, want 0", slope, r2)
	}
}

// Labels at the ends of lines do not overlap; labels without room are left out.
func TestSpreadEnds(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 4))
	for range 2000 {
		p := chart.Plot{Y: chart.Axis{Ends: [2]float64{0, 1}}}
		n := 1 + random.IntN(7)
		for i := range n {
			p.Series = append(p.Series, chart.Series{Name: fmt.Sprint("l", i), X: []float64{0, 1}, Y: []float64{0, random.Float64()}})
		}
		c := p.Draw("p")
		if (len(c.Ends) == 0) == (len(c.Key) == 0) {
			t.Fatalf("%d ends and %d keys of %d lines", len(c.Ends), len(c.Key), n)
		}
		for i := 1; i < len(c.Ends); i++ {
			if chart.Place(c.Ends[i].Y)-chart.Place(c.Ends[i-1].Y) < chart.EndRoom-0.2 {
				t.Fatalf("too near: %+v", c.Ends)
			}
		}
	}
}
