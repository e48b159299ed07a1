package daemon

import (
	"context"
	"testing"
	"time"

	"replayd/internal/config"
	"replayd/internal/measure"
	"replayd/internal/sim"
	"replayd/test/outside"
)

// A trace has rows at 0, 15 and 70 minutes. From the tenth minute on and at twice the speed, it takes 30 minutes.
func TestProgressOfAWorkload(t *testing.T) {
	const text = `{"timestamp": 0, "input_length": 5}
{"timestamp": 900000, "input_length": 5}
{"timestamp": 4200000, "input_length": 5}`
	f := func(name string, rows int, want time.Duration) {
		t.Run(name, func(t *testing.T) {
			_, url := engine(t, func(*sim.Options) {})
			w := once("w", "sim", write(t, "trace.jsonl", text))
			w.Prompt.Calibrate, w.Speed, w.Trace.From, w.Rows = false, 2, 10*time.Minute, rows
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			var s Progress
			started := func(g *Generation) {
				again := time.NewTicker(time.Millisecond)
				defer again.Stop()
				patient, cancel := context.WithTimeout(ctx, outside.Patience)
				defer cancel()
				for s = g.Progress(); s.Length == 0 && rows == 0; s = g.Progress() {
					select {
					case <-again.C:
					case <-patient.Done():
						t.Error("the plan's length is not told")
						return
					}
				}
				stop()
			}
			o := (&heard{}).options(conf([]config.Target{target("sim", url)}, w))
			once := Once{Options: o, Started: started, Ended: func(measure.Ledger, error) {}}
			if err := once.Run(ctx, t.Context()); err != nil {
				t.Error(err)
			}
			if s.Length != want || s.Left < want-outside.Patience || s.Left > want+2*time.Second || s.Ledger.InFlight != 0 {
				t.Errorf("want %v to be played and as much left, got %+v", want, s)
			}
		})
	}
	f("all rows", 0, 30*time.Minute)
	f("the first row only: where its instant lies is not known", 1, 0)
}
