//go:build real

package incidents_test

import (
	"syscall"
	"testing"
	"time"
)

// history is the time that the rules need to look back at before the first incident: two loops.
const history = 2 * loop

func TestIncidents(t *testing.T) {
	began := time.Now()
	w := newWorld(t)
	defer func() { t.Logf("the whole took %.0f s", time.Since(began).Seconds()) }()

	w.waitForHistory(t, began)
	t.Run("each rule is evaluated", func(t *testing.T) { w.evaluated(t) })
	t.Run("each query of a dashboard is answered", func(t *testing.T) { w.runDashboards(t) })
	for _, a := range w.watch.seen(t, began) {
		t.Errorf("nothing is wrong: want it quiet: %s fired", a.name())
	}

	var lines []line
	for _, in := range w.incidents() {
		lines = append(lines, w.run(t, in)...)
	}
	table(t, lines)
}

// incidents are run one after the other. The control workload has no alert in the first two: none is listed.
func (w *world) incidents() []incident {
	e := w.engines[canary]
	engine := map[string]string{"target": canary + "-engine"}
	of := map[string]string{"workload": canary, "target": canary + "-engine"}
	loop := map[string]string{"workload": canary, "target": canary + "-engine", "against": "loop"}
	var starved *starvation
	return []incident{
		{
			name:  "engine slow",
			begin: func(t *testing.T) { e.restart(t, slowFirstToken, slowNextToken) },
			end:   func(t *testing.T) { e.restart(t, firstToken, nextToken) },
			must: []expected{
				{"SLOBurnFast", of, false},
				{"TTFTRegression", loop, false},
				{"TPOTRegression", loop, false},
			},
			may: []expected{
				{"SLOBurnSlow", of, false}, // no request is good for 20 minutes of the rules' time; it goes on for hours
				// On a busy machine the restart takes a second, which is a minute of the rules.
				{"TargetUnreachable", engine, false},
			},
		},
		{
			name: "engine down",
			begin: func(t *testing.T) {
				e.process.Signal(t, syscall.SIGKILL)
				e.process.Wait(t)
			},
			end: func(t *testing.T) { e.start(t, firstToken, nextToken) },
			must: []expected{
				{"TargetUnreachable", engine, false},
				{"TargetDown", of, true}, // these follow from TargetDown
				{"SLOBurnFast", of, true},
				{"EngineUnseen", engine, true},
			},
			may: []expected{
				{"SLOBurnSlow", of, false},
				{"ErrorRatio", of, false},    // it follows too
				{"GPUUnseen", engine, false}, // the engine's process also serves the page of the simulated GPU
			},
		},
		{
			name:  "replayd starved",
			begin: func(t *testing.T) { starved = startStarvation(t, w.replayd.Cmd.Process) },
			end:   func(*testing.T) { starved.stop() },
			must: []expected{
				{"Late", map[string]string{"workload": canary}, false},
				{"Late", map[string]string{"workload": control}, false},
			},
		},
	}
}

// restart starts the engine at other speeds. The engine is killed: otherwise it would wait up to half a second for its
// last answers and accept no connection, and ReplaydTargetUnreachable fires here after a second of that.
func (e *engine) restart(t *testing.T, firstToken, nextToken time.Duration) {
	t.Helper()
	e.process.Signal(t, syscall.SIGKILL)
	e.process.Wait(t)
	e.start(t, firstToken, nextToken)
}

// waitForHistory waits until the history is long enough.
func (w *world) waitForHistory(t *testing.T, began time.Time) {
	t.Helper()
	timer := time.NewTimer(time.Until(began.Add(history)))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.replayd.Done:
		t.Fatalf("replayd ended: %v", w.replayd.Err)
	}
}

// evaluated checks that Prometheus evaluates each rule without an error.
func (w *world) evaluated(t *testing.T) {
	rules, err := w.rules(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	alerts := 0
	for _, r := range rules {
		if r.Health != "ok" || r.LastError != "" {
			t.Errorf("%s: want health ok, got %q, %q\n%s", r.Name, r.Health, r.LastError, r.Query)
		}
		if r.Type == "alerting" {
			alerts++
		}
	}
	if alerts == 0 || alerts == len(rules) {
		t.Errorf("want rules that record and rules that alert, got %d and %d", len(rules)-alerts, alerts)
	}
	t.Logf("%d rules record, %d alert", len(rules)-alerts, alerts)
}
