package daemon

import (
	"log/slog"
	"testing"
	"time"

	"replayd/internal/canary"
	"replayd/internal/config"
)

// A restart of an engine lets the evidence about latencies begin anew, and that about bad requests go on. Another model lets all of it begin anew. A counter
// of restarts that is seen for the first time, or that a reload has set back, says nothing.
func TestEngineOfASideRestarts(t *testing.T) {
	for name, c := range map[string]struct {
		before, now process
		latencies   bool // their evidence goes on
		bad         bool
	}{
		"nothing":            {process{"m", 3, true}, process{"m", 3, true}, true, true},
		"a restart":          {process{"m", 3, true}, process{"m", 4, true}, false, true},
		"the first reading":  {process{model: "m"}, process{"m", 4, true}, true, true},
		"a counter set back": {process{"m", 3, true}, process{"m", 0, true}, true, true},
		"another model":      {process{"m", 3, true}, process{"n", 4, true}, false, false},
		"no model yet":       {process{"m", 3, true}, process{"", 3, true}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			conf := config.DefaultComparison()
			s := &server{config: target("t", "http://t")}
			one := newComparison(conf, [2]config.Workload{}, [2]*server{s, s})
			told := 0
			one.said = func(slog.Level, string) { told++ }
			for i := range 200 {
				p := canary.Pair{At: time.Unix(int64(i), 0)}
				for side := range p.Requests {
					p.Requests[side] = canary.Request{
						Sent: p.At, First: p.At.Add(time.Millisecond), End: p.At.Add(2 * time.Millisecond), TTFT: time.Millisecond, E2E: 2 * time.Millisecond, Bad: side == 1 && i%9 == 0,
					}
				}
				one.verdict.Add(&p)
			}
			one.seen[canary.Candidate] = c.before
			one.watched[canary.Candidate] = func() process { return c.now }
			one.look()
			j := one.verdict.Judge()
			if latencies, bad := j.Metrics[canary.TTFT].Blocks > 0, j.Metrics[canary.Bad].Blocks > 0; latencies != c.latencies || bad != c.bad {
				t.Errorf("latencies go on: %t, want %t; bad goes on: %t, want %t", latencies, c.latencies, bad, c.bad)
			}
			if want := map[bool]int{false: 1}[c.latencies]; told != want {
				t.Errorf("it was told %d times, want %d", told, want)
			}
		})
	}
}
