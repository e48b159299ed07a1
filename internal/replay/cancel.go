package replay

import (
	"time"

	"replayd/internal/fault"
	"replayd/internal/schedule"
	"replayd/internal/trace"
)

// Cancel cancels a fraction of the requests before their answers are complete, like users who leave. The choice depends
// only on the seed, the loop, the row and its pass, so that shards and repetitions cancel the same requests. Requests of
// the warm-up are never cancelled, as in AIPerf (src/aiperf/timing/request_cancellation.py).
//
// A conversation continues after a cancelled turn, as in AIPerf. Guard and SLOs do not count a cancellation as a failure.
type Cancel struct {
	Ratio float64       `koanf:"ratio"` // fraction of the requests, 0 to 1; 0: none
	After time.Duration `koanf:"after"` // since the end of the write; a request that has ended by then is not cancelled
	Seed  uint64        `koanf:"-"`
}

// Check returns the faults of the options.
func (c *Cancel) Check() (f fault.List) {
	f.Share("ratio", c.Ratio)
	f.NotNegative("after", c.After)
	f.If(c.After != 0 && c.Ratio == 0, "after", "needs a ratio above 0, got 0")
	return f
}

func (c Cancel) cancels(due *schedule.Due) bool {
	if c.Ratio <= 0 {
		return false
	}
	h := trace.Mix(c.Seed ^ 0x63616e63656c)
	for _, n := range [...]int64{due.Loop.Number, due.Passes(), int64(due.Number)} {
		h = trace.Mix(h + uint64(n))
	}
	return float64(h>>11)/(1<<53) < c.Ratio
}
