//go:build real

// Package incidents_test tests the rules and the dashboards in a real world, except for simulated engines: `make
// test-real`.
//
// A replayd replays two workloads against two simulated engines, each in its own process. A real Prometheus scrapes
// replayd, evaluates alerts/*.yaml and notifies a real Alertmanager. All durations of the rules are divided by 60, and
// so is the loop: a minute here is an hour there. While nothing is wrong, every expression of every dashboard is run.
// Then the engine of one workload becomes slow, then dies, then replayd itself lacks a CPU. The alerts that fire,
// resolve and stay quiet are compared with a list.
package incidents_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"replayd/test/outside"
)

const (
	repository = "../.."

	scale = 60 // how much faster time runs than in the shipped rules

	loop      = time.Minute // of both workloads: an hour in the rules
	perSecond = 10          // requests of each workload, evenly

	// The speeds of the engines, the speeds of a slow one, and the SLO between them. An answer ends within half a
	// second either way: the shortest window is 5 s long.
	firstToken, ttftSLO, slowFirstToken = 50 * time.Millisecond, 200 * time.Millisecond, 300 * time.Millisecond
	nextToken, tpotSLO, slowNextToken   = 5 * time.Millisecond, 15 * time.Millisecond, 25 * time.Millisecond
	outputTokens                        = 8

	// The canary has the incidents. The control has none, except for those of replayd itself.
	canary, control = "canary", "control"
)

// binary is replayd, built once.
var binary string

func TestMain(m *testing.M) { os.Exit(outside.Main(m, &binary)) }

// A world is everything that runs until the test ends.
type world struct {
	engines map[string]*engine // by workload
	replayd *outside.Process
	prom    outside.Prometheus
	watch   *watch
}

// newWorld starts everything. All processes end with the test, and must end when they are asked to.
func newWorld(t *testing.T) *world {
	t.Helper()
	program := outside.PrometheusTool(t, "alertmanager")
	dir := t.TempDir()
	w := &world{engines: map[string]*engine{}}
	for _, name := range []string{canary, control} {
		w.engines[name] = &engine{dir: dir, name: name, address: outside.Address(t)}
		w.engines[name].start(t, firstToken, nextToken)
	}
	replayd := w.startReplayd(t, dir)
	alertmanager := startAlertmanager(t, dir, program)
	w.prom = startPrometheus(t, dir, replayd, alertmanager)
	w.watch = startWatch(t, alertmanager)
	return w
}

// An engine is a simulated engine with its GPU. A test can end and restart it.
type engine struct {
	dir, name string
	address   string // host:port
	process   *outside.Process
	lives     int
}

func (e *engine) start(t *testing.T, firstToken, nextToken time.Duration, flags ...string) {
	t.Helper()
	e.lives++
	e.process = outside.Start(t, filepath.Join(e.dir, fmt.Sprintf("%s-engine-%d.out", e.name, e.lives)), binary,
		append([]string{"sim", "--web.listen-address", e.address, "--ttft", firstToken.String(), "--itl", nextToken.String(), "--slots", "256"}, flags...)...)
	e.process.Ready(t, http.DefaultClient, "http://"+e.address+"/health")
}

// startReplayd starts a daemon with both workloads.
func (w *world) startReplayd(t *testing.T, dir string) (address string) {
	t.Helper()
	var trace strings.Builder
	for i := range int(loop.Seconds()) * perSecond { // all prompts share their first half
		session := ""
		if i%perSecond == 0 { // sessions of one request, so that no failure ends other rows
			session = fmt.Sprintf(`, "session_id": "s%d"`, i)
		}
		fmt.Fprintf(&trace, `{"timestamp": %d, "input_length": 1024, "output_length": %d, "hash_ids": [0, %d]%s}`+"\n", i*1000/perSecond, outputTokens, i+1, session)
	}
	path := outside.Write(t, dir, "trace.jsonl", trace.String())
	var targets, workloads, gpus strings.Builder
	for name, model := range map[string]string{canary: "", control: "sim"} { // both ways: model is a label of most series
		engine := w.engines[name].address
		fmt.Fprintf(&targets, "- {name: %s-engine, url: \"http://%s\", model: %q, metrics: {interval: 1s}}\n", name, engine, model)
		fmt.Fprintf(&workloads, "- {name: %s, target: %s-engine, trace: {path: %q}, repeat: {every: %s}, slo: {ttft: %s, tpot: %s}}\n",
			name, name, path, loop, ttftSLO, tpotSLO)
		fmt.Fprintf(&gpus, "- {target: %s-engine, dcgm_exporter: \"http://%s/dcgm/metrics\", interval: 1s}\n", name, engine)
	}
	config := outside.Write(t, dir, "replayd.yaml", fmt.Sprintf("targets:\n%sworkloads:\n%sgpus:\n%s", &targets, &workloads, &gpus))
	address = outside.Address(t)
	w.replayd = outside.Start(t, filepath.Join(dir, "replayd.out"), binary, "serve", "--config", config, "--web.listen-address", address,
		"--web.external-url", "http://"+address, "--web.dashboards-url", "http://grafana.example")
	t.Cleanup(func() { w.replayd.Term(t) })
	w.replayd.Ready(t, http.DefaultClient, "http://"+address+"/-/ready")
	return address
}
