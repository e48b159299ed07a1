//go:build real

package image_test

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"replayd/internal/sim"
	"replayd/test/outside"
)

const (
	perSecond    = 20 // rows
	outputTokens = 40 // 2 s at the engine's pace
)

// trace writes three minutes of rows.
func trace(t *testing.T, path string) {
	t.Helper()
	var rows strings.Builder
	for i := range 180 * perSecond {
		fmt.Fprintf(&rows, `{"timestamp": %d, "input_length": 64, "output_length": %d}`+"\n", i*1000/perSecond, outputTokens)
	}
	write(t, path, rows.String())
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// With only its own files, the image's command replays and serves, its health check works, it knows time zones, it
// writes nothing, and it ends only after the requests in flight.
func TestImage(t *testing.T) {
	c := inside(t)
	if c == nil {
		return
	}
	image, dir := named(t, "replayd"), t.TempDir()
	trace(t, filepath.Join(dir, "trace.jsonl"))
	// The daemon joins an activation of this minute in India in its middle. India is half an hour off UTC, so UTC has
	// another time of day.
	at := time.Now().In(time.FixedZone("", 5*3600+1800))
	cron := fmt.Sprintf("mode: cron, cron: \"%d %d * * *\"", at.Minute(), at.Hour())
	write(t, filepath.Join(dir, "replayd.yaml"), fmt.Sprintf(`
targets: [{name: sim, url: "http://127.0.0.1:8000"}]
workloads:
  - {name: steady, trace: {path: /traces/trace.jsonl}, repeat: {align: start, every: 3m}}
  - {name: kolkata, trace: {path: /traces/trace.jsonl}, repeat: {%s, timezone: Asia/Kolkata}}
  - {name: utc, trace: {path: /traces/trace.jsonl}, repeat: {%s, timezone: UTC}}
`, cron, cron))
	c.mount(t, filepath.Join(dir, "replayd.yaml"), "/etc/replayd/replayd.yaml")
	c.mount(t, dir, "/traces")
	c.seal(t)
	before := tree(t, c.root)

	if code, said := c.exec(t, image.probe(t)...); code != 1 || !strings.Contains(said, "connection refused") {
		t.Errorf("health check without a daemon: want exit 1, got %d: %s", code, said)
	}
	seen := filepath.Join(t.TempDir(), "seen.jsonl") // outside of the container
	engine := outside.Start(t, filepath.Join(c.dir, "sim.out"), filepath.Join(c.root, "usr/bin/replayd"), "sim",
		"--ttft", "50ms", "--itl", "50ms", "--slots", "4096", "--log", seen)
	engine.Ready(t, http.DefaultClient, "http://127.0.0.1:8000/health")
	p := c.start(t, image.command(t)...)
	p.Ready(t, http.DefaultClient, page+"/-/ready")
	holdRights(t, p)
	var shown outside.Page
	outside.Until(t, func() (err error) {
		if shown, err = outside.Scrape(t.Context(), page); err != nil {
			return err
		}
		for _, workload := range []string{"steady", "kolkata"} {
			if ok := shown.Sum("replayd_requests_total", workload, "ok"); ok < 40 {
				return fmt.Errorf("%s: want 40 requests that ended well, got %v", workload, ok)
			}
		}
		return nil
	})
	if faults := shown.Balance(); len(faults) > 0 || shown.Sum("replayd_build_info", version) != 1 {
		t.Errorf("want all accounted for and the version %s, got %v and %v", version, faults, shown["replayd_build_info"])
	}
	if n := shown.Sum("replayd_requests_expected_total", "utc"); n != 0 {
		t.Errorf("want nothing at that time of day in UTC, got %v", n)
	}
	if code, said := c.exec(t, image.probe(t)...); code != 0 {
		t.Errorf("health check: want exit 0, got %d: %s", code, said)
	}

	told, _ := p.Signal(t, syscall.SIGTERM)
	p.Wait(t)
	if p.Err != nil {
		t.Errorf("want exit 0, got %v", p.Err)
	}
	if code, _ := c.exec(t, image.probe(t)...); code != 1 {
		t.Errorf("health check after the end: want exit 1, got %d", code)
	}
	drained(t, outside.EngineLog[sim.LogEntry](t, engine, seen), told)
	if strings.Contains(p.Said(t), "read-only") {
		t.Errorf("it tried to write:\n%s", p.Said(t))
	}
	if after := tree(t, c.root); !maps.Equal(before, after) {
		t.Errorf("the root has changed: %v, %v", before, after)
	}
}

// drained checks in the engine's log that all requests in flight at the signal came to their own end.
func drained(t *testing.T, entries []sim.LogEntry, told time.Time) {
	t.Helper()
	late := 0
	for _, e := range entries {
		if e.MaxTokens != outputTokens {
			continue // the probe that measures the chat template
		}
		if e.Outcome != "ok" || e.OutputTokens != outputTokens {
			t.Errorf("%s: want %d tokens, got %s with %d", e.ID, outputTokens, e.Outcome, e.OutputTokens)
		}
		if e.Arrival < told.UnixNano() && e.End > told.UnixNano() {
			late++
		}
	}
	if late < perSecond { // there should be two seconds of rows, twice this
		t.Errorf("want requests in flight at the signal, got %d of %d", late, len(entries))
	}
}

// holdRights checks the rights of the process.
func holdRights(t *testing.T, p *outside.Process) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	status := strings.Join(strings.Fields(string(text)), " ")
	for _, want := range []string{"Uid: 65532 65532 65532 65532", "Gid: 65532 65532 65532 65532", "CapEff: 0000000000000000", "CapPrm: 0000000000000000", "NoNewPrivs: 1"} {
		if !strings.Contains(status, want) {
			t.Errorf("want %s, got %s", want, status)
		}
	}
}
