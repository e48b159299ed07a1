package measure

import (
	"log/slog"
	"os"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// What a finished request costs whoever counts it does not grow with its chunks. The bounds are objects, and were counted; fewer are
// welcome: lower them then.
func TestFinishedRequestsAllocateLittle(t *testing.T) {
	w := NewMeter(prometheus.NewRegistry()).Workload(labels, WorkloadOptions{SLO: slo})
	summary := NewSummary(slo)
	sink := NewSink(lostCounter(), slog.New(slog.DiscardHandler))
	if err := sink.Use(RecordsOptions{Path: os.DevNull}); err != nil {
		t.Fatal(err)
	}
	many := long()
	few := *many
	few.Timeline.Chunks = many.Timeline.Chunks[:10]
	for name, f := range map[string]struct {
		observe func(*Request)
		most    float64
	}{
		"expected and sent": {func(*Request) { w.Expected(1); w.Sent() }, 0},
		"meter":             {w.Finished, mostFinished},
		"summary":           {summary.Observe, 0},
		"record": {func(r *Request) {
			sink.Observe(r)
			if len(sink.pending) > sinkWake {
				sink.flush()
			}
		}, 0},
	} {
		f.observe(many) // buckets and buffers are there
		short := testing.AllocsPerRun(200, func() { f.observe(&few) })
		long := testing.AllocsPerRun(200, func() { f.observe(many) })
		t.Logf("%s: %v objects, %v with %d chunks", name, short, long, len(many.Timeline.Chunks))
		if short > f.most || long > f.most {
			t.Errorf("%s: want at most %v objects a request, got %v, and %v with %d chunks", name, f.most, short, long, len(many.Timeline.Chunks))
		}
	}
}

// mostFinished are four exemplars with their labels.
const mostFinished = 40.0
