//go:build between

package between_test

import (
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"replayd/test/outside"
)

// A request that is lost in flight has failed, and is not sent again: the engine may have run it for long.
func TestLostInFlight(t *testing.T) {
	const (
		rows   = 8                      // and one more that is answered
		worked = 300 * time.Millisecond // longer than the end of a stale connection takes to show: 250 ms at most
	)
	programs := install(t)
	at, all := make(chan struct{}, 10*rows), make(chan struct{})
	answered := stream(0, 0, tokens)
	e := newEngine(t, func(w http.ResponseWriter, r *http.Request, c *call) {
		select {
		case <-all: // it was sent again
			answered(w, r, c)
			return
		default:
		}
		if c.id == "run/0/0" {
			answered(w, r, c)
			return
		}
		at <- struct{}{}
		<-r.Context().Done()
	})
	b := start(t, programs, nginxUnbuffered, e)
	page := outside.Address(t)
	p := begin(t, b.url(), trace(make([]time.Duration, rows+1)),
		"--web.listen-address", page, "--goodput", "ttft:8500ms", "--min-goodput", "1")
	outside.See(t, "http://"+page, "the answered request", func(p outside.Page) bool {
		return p.Sum("replayd_requests_total", "ok") == 1
	})
	wait(t, "all requests at the engine", at, rows)
	<-time.After(worked) // the engine works on the last of them
	close(all)
	worker := regexp.MustCompile(`start worker process (\d+)`).FindStringSubmatch(b.Said(t))
	if worker == nil {
		t.Fatal("want the worker in nginx's log")
	}
	pid, _ := strconv.Atoi(worker[1])
	if parent := parentOf(t, pid); parent != b.Cmd.Process.Pid {
		t.Fatalf("process %d: want nginx's worker, got a child of %d", pid, parent)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.end(t)

	seen := e.seen("run")
	if len(seen) != rows+1 || len(p.records) != rows+1 {
		t.Errorf("want %d requests and records, got %d and %d", rows+1, len(seen), len(p.records))
	}
	for id, calls := range seen {
		if len(calls) != 1 {
			t.Errorf("%s: want it once at the engine, got %d times", id, len(calls))
		}
	}
	for _, r := range p.records {
		want := "no_answer"
		if r.ID == "run/0/0" {
			want = "ok"
		}
		if r.Outcome != want || r.Retried {
			t.Errorf("%s: want %s and no second send, got %s (%s), %v", r.ID, want, r.Outcome, r.Error, r.Retried)
		}
	}
	if p.code != 3 {
		t.Errorf("want exit code 3, got %d", p.code)
	}
	said(t, p.Process, fmt.Sprintf(`^attainment +0\.1111: 1 of %d expected$`, rows+1))
	said(t, p.Process, `slo missed: `)
	b.Ready(t, stranger(t), b.url()+"/v1/models") // a new worker serves the others
}

// wait waits for a number of events.
func wait(t *testing.T, what string, events <-chan struct{}, n int) {
	t.Helper()
	patience := time.NewTimer(outside.Patience)
	defer patience.Stop()
	for i := range n {
		select {
		case <-events:
		case <-patience.C:
			t.Fatalf("%s: want %d, got %d within %v", what, n, i, outside.Patience)
		}
	}
}

// parentOf returns the parent of a process: the fourth field of its stat, after the name in brackets (proc(5)).
func parentOf(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	parent, err := strconv.Atoi(fields[1])
	if err != nil {
		t.Fatal(err)
	}
	return parent
}
