//go:build replay

package replay_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"replayd/internal/sim"
	"replayd/internal/synth"

	"replayd/test/outside"
)

// fastEngine starts an engine that answers within some hundredths of a second.
func fastEngine(t *testing.T, dir string, flags ...string) *engine {
	t.Helper()
	return startEngine(t, dir, append([]string{"--slots", "4096", "--ttft", "20ms", "--itl", "2ms"}, flags...)...)
}

// serve starts a daemon with one workload; rest is YAML of the workload.
func serve(t *testing.T, dir, name string, engine *engine, trace, rest string) (*outside.Process, string) {
	t.Helper()
	config := filepath.Join(dir, name+".yaml")
	text := fmt.Sprintf("targets: [{name: sim, url: \"http://%s\", timeouts: {stall: 1s}}]\nworkloads:\n- name: w\n  trace: {path: %q}\n%s", engine.address, trace, rest)
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	listen := outside.Address(t)
	p := start(t, dir, name, "serve", "--config", config, "--web.listen-address", listen)
	p.Ready(t, http.DefaultClient, "http://"+listen+"/-/ready")
	return p, "http://" + listen
}

func sample(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "sample.jsonl")
	if err := os.WriteFile(path, synth.Sample, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// Two shards of one replay share only their start: every row is
// sent once, sessions stay whole, and both have the same salt.
func TestTwoShards(t *testing.T) {
	dir := t.TempDir()
	engine := fastEngine(t, dir)
	path := sample(t, dir)
	rows := read(t, path)
	begin := time.Now().Add(3 * time.Second).UTC().Format(time.RFC3339Nano)
	var runs [2]*outside.Process
	for i := range runs {
		runs[i] = start(t, dir, fmt.Sprint("run", i), "run", path, "--url", engine.address, "--speed", "20", "--name", "w",
			"--shard", fmt.Sprint(i, "/2"), "--start", begin, "--records", filepath.Join(dir, fmt.Sprintf("records%d.jsonl", i)))
	}
	owner := map[string]int{}
	counts := [2]int{}
	for i, r := range runs {
		if r.Wait(t, 2*time.Minute); r.Err != nil {
			t.Fatal(r.Err)
		}
		for _, r := range readRecords(t, filepath.Join(dir, fmt.Sprintf("records%d.jsonl", i))) {
			counts[i]++
			if s := rows[r.Row].Session; s != "" {
				if o, ok := owner[s]; ok && o != i {
					t.Errorf("session %s is on both shards", s)
				}
				owner[s] = i
			}
		}
	}
	seen := map[string]int{}
	for _, e := range engine.log(t) {
		seen[e.ID]++
	}
	for i := range rows {
		if n := seen[fmt.Sprint("w/0/", i)]; n != 1 {
			t.Errorf("row %d: want it once, got it %d times", i, n)
		}
	}
	if len(seen) != len(rows) || counts[0] == 0 || counts[1] == 0 {
		t.Errorf("want %d rows from two shards, got %d: %v", len(rows), len(seen), counts)
	}
	t.Logf("%d rows: %d and %d, %d sessions", len(rows), counts[0], counts[1], len(owner))
}

// A daemon that starts in the middle of a loop with align wall_clock joins at the row of the clock.
func TestJoinsInMidLoop(t *testing.T) {
	dir := t.TempDir()
	engine := fastEngine(t, dir)
	path := sample(t, dir)
	rows := read(t, path)
	const speed, loop = 20, 10 * time.Second
	// The start is away from the ends of a loop, where joining and starting are the same.
	if at := time.Duration(time.Now().UnixNano()) % loop; at < 3*time.Second || at > 6*time.Second {
		wait := time.NewTimer((loop + 4*time.Second - at) % loop)
		<-wait.C
	}
	joined := time.Now()
	p, url := serve(t, dir, "join", engine, path, fmt.Sprintf("  speed: %d\n  repeat: {every: %v}\n", speed, loop))
	up := time.Now()
	watch(t, url, 300, time.Minute)
	p.Term(t, time.Minute)
	number := joined.UnixNano() / int64(loop)
	border := time.Unix(0, number*int64(loop))
	first := -1
	for _, e := range engine.log(t) {
		_, n, row := outside.Place(t, e.ID)
		at := border.Add(time.Duration(n-number)*loop + time.Duration(float64(rows[row].Offset)/speed))
		// A turn of a session may wait for the turn before it. No request may be early.
		if early := at.Sub(time.Unix(0, e.Arrival)); early > time.Millisecond {
			t.Errorf("%s: early by %v", e.ID, early)
		}
		if n == number && (first < 0 || row < first) {
			first = row
		}
	}
	if first < 0 {
		t.Fatal("nothing of the loop that ran was sent")
	}
	at := time.Duration(float64(rows[first].Offset) / speed)
	t.Logf("started %v into the loop, ready by %v; first row %d of %d, planned %v into it",
		joined.Sub(border).Round(time.Millisecond), up.Sub(border).Round(time.Millisecond), first, len(rows), at)
	if at < joined.Sub(border) || at > up.Sub(border)+time.Second {
		t.Errorf("want the first row at about %v, got %v", up.Sub(border), at)
	}
}

// Each kind of fault is counted as many times as the engine made it.
func TestFaultsByOutcome(t *testing.T) {
	dir := t.TempDir()
	engine := fastEngine(t, dir, "--fault-500", "0.08", "--fault-429", "0.08", "--fault-cut", "0.08", "--fault-garbled", "0.08",
		"--fault-empty", "0.08", "--fault-stalled", "0.08", "--fault-error-event", "0.08", "--fault-abort", "0.08")
	// Without sessions, so that a failed turn does not end others.
	path := filepath.Join(dir, "rows.jsonl")
	var text strings.Builder
	const rows = 400
	for i := range rows {
		fmt.Fprintf(&text, `{"timestamp": %d, "input_length": 50, "output_length": 20}`+"\n", i*20)
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	p, url := serve(t, dir, "faults", engine, path, "  repeat: {mode: once}\n  lanes: 512\n")
	final := watch(t, url, rows, time.Minute)
	p.Term(t, time.Minute)
	outcome := map[string]string{
		sim.Gone: "bad_stream", sim.FaultGarbled: "bad_stream", // replayd closes at once, and the engine may have written all by then
		sim.OK: "ok", sim.FaultError500: "http_5xx", sim.FaultError429: "http_429", sim.FaultCut: "truncated",
		sim.FaultEmpty: "empty", sim.FaultStalled: "timeout_stall", sim.FaultErrorEvent: "error_event",
		sim.FaultAbort: "server_abort",
	}
	want := map[string]int{}
	for _, e := range engine.log(t) {
		want[outcome[e.Outcome]]++
	}
	for _, name := range outcome {
		if want[name] == 0 {
			t.Errorf("want every fault, got %v", want)
		}
	}
	for name, n := range want {
		if got := int(final.Sum("replayd_requests_total", name)); got != n {
			t.Errorf("%s: the engine did it %d times, counted %d", name, n, got)
		}
	}
	t.Logf("by the engine's log: %v", want)
}
