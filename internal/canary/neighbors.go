package canary

import (
	"math"
	"slices"
)

// neighbors is the correlation of neighboring block values. It is computed for stretches of 50 blocks, each about its
// own mean, and the median of the latest ten counts. So a change of level, which is what a comparison has to find, is
// seen in one stretch only. In one correlation of all blocks it would withhold the verdict: a candidate that is equal
// for an hour and then 10 % slower is at 0.4.
type neighbors struct {
	Values    int64     `json:"values"` // so far
	Present   stretch   `json:"present"`
	Stretches []float64 `json:"stretches"` // correlations of whole ones, the latest last
}

const (
	stretchBlocks = 50
	maxStretches  = 10
)

func (n neighbors) clone() neighbors {
	n.Stretches = append([]float64{}, n.Stretches...)
	return n
}

// A stretch is consecutive block values.
type stretch struct {
	N        int64   `json:"n"`
	First    float64 `json:"first"`
	Last     float64 `json:"last"`
	Sum      float64 `json:"sum"`
	Squares  float64 `json:"squares"`
	Products float64 `json:"products"` // of neighbors
}

func (n *neighbors) add(v float64) {
	n.Values++
	n.Present.add(v)
	if n.Present.N < stretchBlocks {
		return
	}
	n.Stretches = latest(n.Stretches, n.Present.correlation(), maxStretches)
	n.Present = stretch{}
}

func (s *stretch) add(v float64) {
	if s.N == 0 {
		s.First = v
	} else {
		s.Products += v * s.Last
	}
	s.Last = v
	s.N++
	s.Sum += v
	s.Squares += v * v
}

// correlation is the lag-1 autocorrelation; 0 where all values are equal.
func (s *stretch) correlation() float64 {
	n := float64(s.N)
	mean := s.Sum / n
	variance := s.Squares - n*mean*mean
	if variance <= 1e-12*s.Squares {
		return 0
	}
	// Σ (vᵢ − mean)(vᵢ₊₁ − mean) = Σ vᵢvᵢ₊₁ − mean·(2·sum − first − last) + (n−1)·mean²
	return (s.Products - mean*(2*s.Sum-s.First-s.Last) + (n-1)*mean*mean) / variance
}

// correlation is the median of the stretches, of an even number the lower one of the middle two; NaN below 50 blocks.
func (n *neighbors) correlation() float64 {
	if len(n.Stretches) == 0 {
		return math.NaN()
	}
	var sorted [maxStretches]float64
	all := sorted[:copy(sorted[:], n.Stretches)]
	slices.Sort(all)
	return all[(len(all)-1)/2]
}

const (
	dependLeast = 2            // stretches: of a single one, a change of level would count
	dependBound = 0.2          // of the correlation
	dependWidth = 1.645 * 1.25 // of its lower 95 % bound, in units of 1/√blocks; a median has 1.25 times the error of a mean
)

// depend says whether the blocks depend on each other. Then evidence is no evidence.
func (n *neighbors) depend() bool {
	whole := len(n.Stretches)
	return whole >= dependLeast && n.correlation()-dependWidth/math.Sqrt(float64(whole*stretchBlocks)) > dependBound
}
