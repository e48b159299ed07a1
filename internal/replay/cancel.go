package replay

import (
	"time"

	"replayd/internal/schedule"
)

// Cancel ends a share of the requests before their answers have come, as users do who go away. Which ones is a function of
// the seed, the loop, the row and its pass, so that shards and repetitions cancel the same; no request of a warm-up is one of
// them, as with AIPerf (src/aiperf/timing/request_cancellation.py).
//
// A conversation goes on after a turn that was cancelled, as there too. Neither guard nor service levels take it for a
// failure.
type Cancel struct {
	Ratio float64       // 0 to 1 of the requests; 0: none
	After time.Duration // from the end of the write; what has ended by then stays what it is
	Seed  uint64
}

// takes says whether a row's request is to be cancelled.
func (c Cancel) takes(due *schedule.Due) bool {
	if c.Ratio <= 0 {
		return false
	}
	h := mix(c.Seed ^ 0x63616e63656c)
	for _, n := range [...]int64{due.Loop.Number, due.Passes(), int64(due.Number)} {
		h = mix(h + uint64(n))
	}
	return float64(h>>11)/(1<<53) < c.Ratio
}

// mix is a step of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
func mix(h uint64) uint64 {
	h += 0x9e3779b97f4a7c15
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
