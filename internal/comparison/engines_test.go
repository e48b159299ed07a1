package comparison

import (
	"log/slog"
	"testing"
	"time"

	"replayd/internal/canary"
)

// A restart of an engine lets the evidence about latencies begin anew, and that about bad requests go on. Another model lets all of it begin anew. A counter
// of restarts that is seen for the first time, or that a reload has set back, says nothing.
func TestEngineOfASideRestarts(t *testing.T) {
	engine := func(model string, restarts int64) Engine {
		return Engine{Model: model, Restarts: restarts, Counted: true}
	}
	for name, c := range map[string]struct {
		before, now Engine
		latencies   bool // their evidence goes on
		bad         bool
	}{
		"nothing":            {engine("m", 3), engine("m", 3), true, true},
		"a restart":          {engine("m", 3), engine("m", 4), false, true},
		"the first reading":  {Engine{Model: "m"}, engine("m", 4), true, true},
		"a counter set back": {engine("m", 3), engine("m", 0), true, true},
		"another model":      {engine("m", 3), engine("n", 4), false, false},
		"no model yet":       {engine("m", 3), engine("", 3), true, true},
	} {
		t.Run(name, func(t *testing.T) {
			told := 0
			one := New(Options{
				Options: canary.Defaults(), News: func(slog.Level, string) { told++ },
				Engines: [2]func() Engine{canary.Candidate: func() Engine { return c.now }},
			})
			for i := range 200 {
				p := canary.Pair{At: time.Unix(int64(i), 0)}
				for side := range p.Requests {
					p.Requests[side] = canary.Request{
						Sent: p.At, First: p.At.Add(time.Millisecond), End: p.At.Add(2 * time.Millisecond),
						TTFT: time.Millisecond, E2E: 2 * time.Millisecond, Bad: side == 1 && i%9 == 0,
					}
				}
				one.verdict.Add(&p)
			}
			one.seen[canary.Candidate] = c.before
			one.checkEngines(time.Now())
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
