package replay

import (
	"time"

	"replayd/internal/schedule"
)

// Cancel cancels a fraction of the requests before their answers are complete, like users who leave. The choice depends
// only on the seed, the loop, the row and its pass, so that shards and repetitions cancel the same requests. Requests of
// the warm-up are never cancelled, as in AIPerf (src/aiperf/timing/request_cancellation.py).
//
// A conversation continues after a cancelled turn, as in AIPerf. Guard and SLOs do not count a cancellation as a failure.
type Cancel struct {
	Ratio float64       // fraction of the requests, 0 to 1; 0: none
	After time.Duration // since the end of the write; a request that has ended by then is not cancelled
	Seed  uint64
}

// takes reports whether a row's request is to be cancelled.
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

// mix returns a step of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
func mix(h uint64) uint64 {
	h += 0x9e3779b97f4a7c15
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
