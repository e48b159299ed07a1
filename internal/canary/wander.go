package canary

import (
	"fmt"
	"math"
	"time"
)

// wanderBlocks is how many neighboring blocks show the level of a ratio: as many as a pass needs at least.
const wanderBlocks = 11

// A Wandering is how far the ratios of two equal servers were from 1.
type Wandering struct {
	Wander float64 // the option that it proposes
	Metric Metric  // that was farthest
	Blocks int     // of it
	Lasted time.Duration
}

// WanderOf proposes the option Wander from the blocks of two equal servers: the greatest distance from 0 that the median of 11 neighboring blocks of a
// latency had, rounded up to half a percent. It knows nothing of what wanders more slowly than the time that the blocks took. ok is false below 22
// blocks with latencies.
func WanderOf(blocks []Block) (w Wandering, ok bool) {
	for m := TTFT; m.IsLatency(); m++ {
		var values []float64
		for i := range blocks {
			if v := math.Log(blocks[i].Metrics[m].Ratio); !math.IsNaN(v) {
				values = append(values, v)
			}
		}
		if len(values) < 2*wanderBlocks {
			continue
		}
		for i := range len(values) - wanderBlocks + 1 {
			level := append([]float64(nil), values[i:i+wanderBlocks]...)
			if farthest := math.Abs(median(level)); !ok || farthest > w.Wander {
				w, ok = Wandering{Wander: farthest, Metric: m, Blocks: len(values)}, true
			}
		}
	}
	if ok {
		w.Wander = math.Ceil(w.Wander*200) / 200
		w.Lasted = blocks[len(blocks)-1].End.Sub(blocks[0].Begin)
	}
	return w, ok
}

// Text says what the option may be, by what it was measured, and the least tolerance that can pass then.
func (w Wandering) Text() string {
	return fmt.Sprintf("in %v the ratio of %s was at most %s from 1, as a median of %d neighboring blocks of %d: --wander %.3g%% (wander: %.3g). "+
		"It says nothing of what wanders more slowly. A pass then needs a tolerance above %s",
		w.Lasted.Round(time.Second), w.Metric, percent(w.Wander), wanderBlocks, w.Blocks, 100*w.Wander, w.Wander, percent2(math.Expm1(w.Wander)))
}
