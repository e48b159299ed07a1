package well_test

import (
	"strings"
	"testing"
	"time"

	"replayd/internal/config"
	"replayd/internal/schedule"
)

// The speeds of a healthy engine, including fast and slow ones for which no alert may fire.
var (
	ttfts = []time.Duration{50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond, 300 * time.Millisecond, 500 * time.Millisecond}
	itls  = []time.Duration{10 * time.Millisecond, 20 * time.Millisecond, 30 * time.Millisecond, 50 * time.Millisecond}
)

// A healthy engine, however slow, answers everything that our configurations ask, within the SLO.
func TestShippedConfigurationsLoseNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("300,000 chunks take minutes under the race detector")
	}
	for name, c := range map[string]struct {
		config func(t *testing.T) config.Config
		long   time.Duration // a loop, and the answers of its last rows
	}{
		"chart":   {chart, 31 * time.Minute},
		"compose": {func(t *testing.T) config.Config { return load(t, "../../deploy/replayd.yaml", sample(t)) }, 5 * time.Minute},
		"sidecar": {func(t *testing.T) config.Config {
			return load(t, "../../deploy/kubernetes/sidecar/replayd.yaml", absolute(t, "../../deploy/kubernetes/sidecar/trace.jsonl"))
		}, time.Hour},
		"example": {func(t *testing.T) config.Config { return load(t, "../../docs/replayd.example.yaml", sample(t)) }, 5 * time.Minute},
		// With the public trace, if it is there.
		"example, public trace": {func(t *testing.T) config.Config { return load(t, "../../docs/replayd.example.yaml", public(t)) }, 70 * time.Minute},
		"sidecar.md, public trace": {func(t *testing.T) config.Config {
			return load(t, documented(t, "../../docs/how-to/sidecar.md"), public(t))
		}, 25 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conf := c.config(t)
			conf.Workloads[0].Repeat = schedule.Repeat{Mode: "once"}
			engine := of(ttfts[len(ttfts)-1], itls[len(itls)-1])
			if strings.HasSuffix(name, "public trace") {
				engine.ChunkTokens = 8 // a chunk for each token, 4 million of them, doubles the time
			}
			_, page := play(t, conf, time.Minute, engine, c.long)
			expected, good := page.Sum("replayd_requests_expected_total"), page.Sum("replayd_goodput_requests_total")
			if expected < 100 || good != expected {
				t.Errorf("want every request good, 100 or more, got %v of %v; dropped %v, in flight %v, slow %v", good, expected,
					page.Sum("replayd_requests_dropped_total"), page.Sum("replayd_requests_in_flight"), page.Sum("replayd_slo_violations_total"))
			}
		})
	}
}
