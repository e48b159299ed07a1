package metrics

import (
	"testing"

	"replayd/internal/measure"
	"replayd/test/measuretest"

	"github.com/prometheus/client_golang/prometheus"
)

// The allocations of a finished request do not depend on its chunks. The bounds are measured numbers of objects; lower
// them if there are fewer.
func TestFinishedRequestsAllocateLittle(t *testing.T) {
	w := NewMeter(prometheus.NewRegistry()).Workload(labels, WorkloadOptions{SLO: measuretest.SLO})
	many := measuretest.Long()
	few := *many
	few.Timeline.Chunks = many.Timeline.Chunks[:10]
	for name, f := range map[string]struct {
		observe func(*measure.Request)
		most    float64
	}{
		"expected and sent": {func(*measure.Request) { w.Expected(1); w.Sent() }, 0},
		"finished":          {w.Finished, maxFinished},
	} {
		f.observe(many) // create the buckets first
		short := testing.AllocsPerRun(200, func() { f.observe(&few) })
		long := testing.AllocsPerRun(200, func() { f.observe(many) })
		if short > f.most || long > f.most {
			t.Errorf("%s: want at most %v objects a request, got %v, and %v with %d chunks", name, f.most, short, long, len(many.Timeline.Chunks))
		}
	}
}

// maxFinished allows for five exemplars with their labels.
const maxFinished = 42.0
