//go:build daemon

package daemon_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"replayd/internal/sim"

	"replayd/test/outside"
)

// A piped daemon writes its log and its stdout to a pipe that the test reads.
type piped struct {
	*stage
	log     *os.File
	process *outside.Process
}

// newPiped starts a daemon with 100 workloads, so that a pause or a resume logs 100 lines.
func newPiped(t *testing.T) *piped {
	t.Helper()
	p := &piped{stage: newStage(t, "--ttft", "20ms", "--itl", "5ms", "--chunk-tokens", "1")}
	path := filepath.Join(p.Dir, "trace.jsonl")
	outside.Put(t, path, outside.Trace(outside.Plain(450, 10, 50, 20, 1)))
	text := fmt.Sprintf("records: {path: %q}\nworkloads:\n- {name: w, trace: {path: %q}, speed: 5, repeat: {every: 10s}}\n", p.Records, path)
	for i := range 99 { // with no due requests
		text += fmt.Sprintf("- {name: w%d, trace: {path: %q}, repeat: {mode: cron, cron: \"0 3 29 2 *\"}}\n", i, path)
	}
	p.write(t, text)
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p.log = in
	t.Cleanup(func() { _ = in.Close() })
	p.process = outside.StartInto(t, out, binary, "serve", "--config", p.Config, "--web.listen-address", p.Listen, "--web.enable-lifecycle")
	_ = out.Close() // the daemon has its own copy
	outside.See(t, p.URL(), "requests that ended", 20*time.Second, func(p page) bool { return p.Sum("replayd_requests_total", "w", "ok") > 20 })
	return p
}

// talk makes the daemon log until it drops lines.
func (p *piped) talk(t *testing.T) {
	t.Helper()
	for range 100 {
		outside.Post(t, p.URL()+"/-/pause", 200)
		outside.Post(t, p.URL()+"/-/resume", 200)
		now, err := outside.Scrape(t.Context(), p.URL())
		if err != nil {
			t.Fatal(err)
		}
		if now.Sum("replayd_log_lines_dropped_total") > 0 {
			return
		}
	}
	t.Fatal("want replayd_log_lines_dropped_total above 0 after 20,000 lines")
}

// goesOn expects 100 more requests that end ok, and none that failed or was dropped.
func (p *piped) goesOn(t *testing.T) {
	t.Helper()
	before, err := outside.Scrape(t.Context(), p.URL())
	if err != nil {
		t.Fatal(err)
	}
	ok := func(p page) float64 { return p.Sum("replayd_requests_total", "w", "ok") }
	now := outside.See(t, p.URL(), "100 requests more", 30*time.Second, func(now page) bool { return ok(now) >= ok(before)+100 })
	t.Logf("%v requests ok, %v log lines dropped", ok(now), now.Sum("replayd_log_lines_dropped_total"))
	if finished, _ := now.Ended("w"); finished != ok(now) {
		t.Errorf("want all of %v finished requests ok, got %v", finished, ok(now))
	}
}

// term ends the daemon as an operator would and expects a clean drain.
func (p *piped) term(t *testing.T) {
	t.Helper()
	p.process.Term(t, 60*time.Second)
	log := p.arrivals(t)
	records, _ := outside.Records(t, p.Records, false)
	for _, x := range p.join(t, log, records) {
		if x.Outcome != "ok" || x.engine.Outcome != sim.OK {
			t.Errorf("%s: ended %s by its record, %s by the engine", x.ID, x.Outcome, x.engine.Outcome)
		}
	}
}

// A closed log pipe costs log lines and nothing else.
func TestLogPipeIsClosed(t *testing.T) {
	p := newPiped(t)
	if line, err := bufio.NewReader(p.log).ReadString('\n'); err != nil || !strings.HasPrefix(line, "time=") {
		t.Errorf("want a log line, got %q, %v", line, err)
	}
	if err := p.log.Close(); err != nil {
		t.Fatal(err)
	}
	p.talk(t)
	p.goesOn(t)
	p.term(t)
}

// A log pipe that nobody reads does not delay the replay, a pause or the end. When it is read again, the log continues.
func TestLogPipeHangs(t *testing.T) {
	p := newPiped(t)
	p.talk(t)
	p.goesOn(t)
	p.talk(t)
	p.goesOn(t)
	read, caughtUp := make(chan error, 1), make(chan struct{})
	go func() {
		lines := bufio.NewScanner(p.log)
		for bytes := 0; lines.Scan(); bytes += len(lines.Bytes()) + 1 {
			if bytes < backlog && bytes+len(lines.Bytes())+1 >= backlog {
				close(caughtUp)
			}
			if strings.Contains(lines.Text(), "stopped: no request is in flight") {
				read <- nil
				return
			}
		}
		read <- errors.Join(lines.Err(), io.ErrUnexpectedEOF)
	}()
	select {
	case <-caughtUp:
	case err := <-read:
		t.Fatal(err)
	case <-time.After(60 * time.Second):
		t.Fatal("want the log to go on")
	}
	p.term(t)
	if err := <-read; err != nil {
		t.Errorf("want the last line in the log, got %v", err)
	}
}

// backlog is more bytes than the pipe (64 KiB on Linux) and the batch that filled it hold. After a reader has read that
// many, the 256 KiB that waited have been taken, and new lines have room.
const backlog = 128 << 10

// If nobody ever reads the log pipe again, the daemon still ends.
func TestLogPipeHangsToTheEnd(t *testing.T) {
	p := newPiped(t)
	p.talk(t)
	p.term(t)
}
