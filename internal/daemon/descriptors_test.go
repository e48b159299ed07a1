package daemon

import (
	"bytes"
	"log/slog"
	"math"
	"strings"
	"testing"

	"replayd/internal/config"
	"replayd/internal/replay"
)

// Visitors get the descriptors that lanes, probes, scrapes and files leave, and always enough for a scrape.
func TestDescriptors(t *testing.T) {
	c := config.Default()
	c.Targets = []config.Target{{Name: "a"}, {Name: "b", Metrics: config.Metrics{Replicas: "b.svc"}}}
	c.Workloads = []config.Workload{{Name: "w", Sending: replay.Sending{Lanes: 100}}}
	c.Comparisons = []config.Comparison{{Workload: "w", Candidate: "b"}}
	const need = 24 + 2*4 + 64 + 2*(100+4)
	if got := descriptors(&c); got != need {
		t.Errorf("want %d, got %d", need, got)
	}
	for limit, want := range map[int]int{64: 16, need + 16: 16, need + 100: 100, 65536: 512} {
		if got := visitorsOf(&c, limit); got != want {
			t.Errorf("of %d: want %d connections, got %d", limit, want, got)
		}
		var log bytes.Buffer
		warnDescriptors(slog.New(slog.NewTextHandler(&log, nil)), &c, limit)
		if told := strings.Contains(log.String(), "the limit of open files is too low"); told != (limit < need+16) {
			t.Errorf("of %d: told %q", limit, log.String())
		}
	}
	c.Workloads[0].Lanes = math.MaxInt
	if got := descriptors(&c); got < math.MaxInt32 {
		t.Errorf("want a great many, got %d", got)
	}
}
