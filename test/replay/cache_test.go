//go:build replay

package replay_test

import (
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"replayd/internal/sim"

	"replayd/test/machine"
	"replayd/test/outside"
)

// With a salt per loop, an engine with an unlimited cache hits what the trace itself repeats, anew in each loop.
// Without salt the second loop hits the text of the first.
func TestHitRatio(t *testing.T) {
	to := outside.Knob(t, "REPLAY_TO", 2*time.Minute, time.ParseDuration)
	path, stats := conversation(t, to)
	ideal := stats.Prefix.HitTokenRatio
	const speed = 120
	for _, c := range []struct {
		salt  string
		lanes int
	}{{"loop", 512}, {"loop", 1}, {"none", 512}} {
		t.Run(fmt.Sprintf("salt %s, %d lanes", c.salt, c.lanes), func(t *testing.T) {
			dir := t.TempDir()
			engine, listen := startEngine(t, dir, "--slots", "8192", "--prefill-rate", "1e9", "--decode-rate", "1e6", "--cache-tokens", "1000000000"), outside.Address(t)
			config := filepath.Join(dir, "replayd.yaml")
			// The first minute holds the trace. No request is dropped, whatever the number of lanes.
			text := fmt.Sprintf(`
targets: [{name: sim, url: "http://%s"}]
workloads:
  - name: w
    trace: {path: %q, max_output: 1, over_limit: clip}
    speed: %v
    repeat: {mode: loop, align: start, every: %v}
    prompt: {salt: %s}
    lanes: %d
    max_wait: 0s
`, engine.address, path, speed, every(stats.Span, speed), c.salt, c.lanes)
			if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			daemon := start(t, dir, "serve", "serve", "--config", config, "--web.listen-address", listen)
			daemon.Ready(t, http.DefaultClient, "http://"+listen+"/-/ready")
			watch(t, "http://"+listen, 2*stats.Requests, 2*every(stats.Span, speed)+3*time.Minute)
			daemon.Term(t)

			var cached, prompt [2]float64
			var requests [2]int
			for _, e := range engine.log(t) {
				_, loop, _ := outside.Place(t, e.ID)
				if loop > 1 || e.Outcome != sim.OK {
					continue // the third loop had begun
				}
				requests[loop]++
				cached[loop] += float64(e.CachedTokens)
				prompt[loop] += float64(e.PromptTokens)
			}
			first, second := cached[0]/prompt[0], cached[1]/prompt[1]
			t.Logf("%d rows a loop, ideal %.4f, first loop %.4f, second loop %.4f", stats.Requests, ideal, first, second)
			if requests != [2]int{stats.Requests, stats.Requests} {
				t.Fatalf("want two whole loops of %d requests, got %v", stats.Requests, requests)
			}
			near := func(name string, got float64) {
				if math.Abs(got-ideal) > 0.01 && machine.Measures(t, "the hit ratio, which the order of arrivals decides") {
					t.Errorf("%s: want within 0.01 of %.4f, got %.4f", name, ideal, got)
				}
			}
			near("first loop", first)
			if c.salt == "none" {
				if second < ideal+0.2 {
					t.Errorf("without salt: want far more than %.4f in the second loop, got %.4f", ideal, second)
				}
				return
			}
			near("second loop", second)
			if second > first+0.001 && machine.Measures(t, "the hit ratio, which the order of arrivals decides") {
				t.Errorf("want no more than %.4f in the second loop, got %.4f", first, second)
			}
		})
	}
}

// every returns the length of a loop that holds the trace, in whole seconds.
func every(span time.Duration, speed float64) time.Duration {
	return (time.Duration(float64(span)/speed) + 2*time.Second).Truncate(time.Second)
}
