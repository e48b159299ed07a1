package canary

import "math"

// recentBlocks is the number of blocks that show what a metric is now.
const recentBlocks = 60

// A recent holds the latest blocks of a metric: values of a latency, or tallies of a share.
type recent struct {
	values  [recentBlocks]float64
	tallies [recentBlocks]Tally
	blocks  int // at most recentBlocks
	next    int // place of the next block
}

func (r *recent) addValue(v float64) {
	r.values[r.next] = v
	r.move()
}

func (r *recent) addTally(t Tally) {
	r.tallies[r.next] = t
	r.move()
}

func (r *recent) move() {
	r.next = (r.next + 1) % recentBlocks
	r.blocks = min(r.blocks+1, recentBlocks)
}

// median is NaN without blocks.
func (r *recent) median() float64 {
	if r.blocks == 0 {
		return math.NaN()
	}
	sorted := r.values
	return median(sorted[:r.blocks])
}

func (r *recent) excess() float64 {
	sum := Tally{}
	for _, t := range r.tallies[:r.blocks] {
		sum.add(t)
	}
	return sum.excess()
}
