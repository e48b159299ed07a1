//go:build real

package ledger_test

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"replayd/test/outside"
)

const second = int64(time.Second)

// A run is one command line of `replayd run` with its expected properties.
type run struct {
	name     string
	engine   []string // flags of the simulated engine
	trace    string   // its rows; "": the flags define the load
	args     []string
	expected int
	filtered int    // rows over the limits on their lengths
	sessions int    // s0, s1 and so on, of equally many turns; 0: the rows have none
	drops    string // the reason of all drops; "": nothing is dropped
	chosen   bool   // the workload is configured to drop requests without a lane
	atOnce   bool   // it begins before Prometheus has scraped its counters at 0
	aiperf   bool   // stdout has AIPerf's table
}

// rows makes lines of a trace, one per gap.
func rows(n int, gap time.Duration, line func(i int) string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"timestamp": %d, %s}`+"\n", int64(i)*gap.Milliseconds(), line(i))
	}
	return b.String()
}

func lengths(input, output int) func(int) string {
	return func(int) string { return fmt.Sprintf(`"input_length": %d, "output_length": %d`, input, output) }
}

// Each turn of a session is sent after the turn before it.
func turns(sessions int) func(int) string {
	return func(i int) string {
		return fmt.Sprintf(`"input_length": 20, "output_length": 4, "session_id": "s%d"`, i%sessions)
	}
}

var runs = []run{
	{
		name: "open", engine: []string{"--ttft", "20ms", "--itl", "2ms"}, trace: rows(30, 50*time.Millisecond, lengths(20, 5)),
		args: []string{"--slo", "ttft:20s,tpot:5s"}, expected: 30,
	},
	{
		name: "closed", engine: []string{"--ttft", "20ms", "--itl", "2ms"}, trace: rows(10, time.Second, lengths(20, 5)),
		args: []string{"--concurrency", "3", "--requests", "40"}, expected: 40,
	},
	{
		name: "overload that was chosen", engine: []string{"--ttft", "300ms", "--itl", "1ms"}, trace: rows(40, 50*time.Millisecond, lengths(20, 2)),
		args: []string{"--lanes", "2", "--overload", "drop", "--goodput", "ttft:20s", "--min-goodput", "0.99"}, expected: 40, drops: "overload", chosen: true,
	},
	{
		name: "overload", engine: []string{"--ttft", "300ms", "--itl", "1ms"}, trace: rows(40, 50*time.Millisecond, lengths(20, 2)),
		args: []string{"--lanes", "2", "--max-wait", "400ms", "--goodput", "ttft:20s", "--min-goodput", "0.99"}, expected: 40, drops: "overload",
	},
	{
		name: "answers of one token", engine: []string{"--ttft", "20ms"}, trace: rows(30, 50*time.Millisecond, func(i int) string { return lengths(20, 1+i%2*4)(i) }),
		args: []string{"--goodput", "ttft:20s,tpot:5s", "--min-goodput", "0.99"}, expected: 30,
	},
	{
		name: "half not judged", engine: []string{"--ttft", "20ms", "--itl", "2ms", "--buffer"},
		trace: rows(30, 50*time.Millisecond, func(i int) string { return lengths(20, 1+i%2*4)(i) }), // five tokens in one read: 0 to 7 ms each
		args:  []string{"--goodput", "ttft:20s,tpot:5ms", "--min-goodput", "0.5"}, expected: 30,
	},
	{
		name: "half too slow", engine: []string{"--prefill-rate", "8000", "--itl", "1ms"},
		trace: rows(16, 500*time.Millisecond, func(i int) string { return lengths(100+i%2*6000, 3)(i) }), // the long ones take 0.75 s
		args:  []string{"--goodput", "ttft:500ms", "--min-goodput", "0.99"}, expected: 16,
	},
	{
		name: "half reasons too long", engine: []string{"--ttft", "20ms", "--itl", "250ms", "--reasoning-tokens", "3"},
		trace: rows(16, 100*time.Millisecond, func(i int) string { return lengths(20, 3+i%2)(i) }), // the long ones answer after 0.77 s, the others never
		args:  []string{"--goodput", "ttfat:500ms", "--min-goodput", "0.99"}, expected: 16,
	},
	{
		name: "a bound that only AIPerf names", engine: []string{"--ttft", "20ms", "--itl", "2ms"}, trace: rows(20, 50*time.Millisecond, lengths(20, 5)),
		args: []string{"--goodput", "output_token_throughput_per_user:100000", "--min-goodput", "0.99"}, expected: 20,
	},
	{
		name: "cancelled", engine: []string{"--ttft", "400ms", "--itl", "1ms"}, trace: rows(30, 50*time.Millisecond, lengths(20, 3)),
		args: []string{"--cancel", "0.4", "--cancel-after", "100ms", "--goodput", "ttft:20s"}, expected: 30,
	},
	{
		name: "failures", engine: []string{"--ttft", "20ms", "--fault-500", "0.2", "--fault-429", "0.2", "--fault-cut", "0.2", "--seed", "7"},
		trace: rows(40, 50*time.Millisecond, lengths(20, 5)), args: []string{"--goodput", "e2e:20s"}, expected: 40,
	},
	{
		name: "sessions", engine: []string{"--ttft", "20ms", "--fault-500", "0.3", "--seed", "3"}, trace: rows(40, 50*time.Millisecond, turns(8)),
		args: []string{"--goodput", "ttft:20s", "--slo-session", "5m"}, expected: 40, drops: "session_failed", sessions: 8,
	},
	{
		name: "filtered", engine: []string{"--ttft", "20ms"}, trace: rows(40, 50*time.Millisecond, func(i int) string { return lengths(20+(3-i%4)*100, 3)(i) }), // only the last of four is sent
		args: []string{"--max-input", "300"}, expected: 30, filtered: 10,
	},
	{
		name: "warmed up", engine: []string{"--ttft", "20ms"}, trace: rows(20, 50*time.Millisecond, lengths(20, 3)),
		args: []string{"--warmup", "5", "--slo", "ttft:20s"}, expected: 20, atOnce: true, // a warm-up excludes --start
	},
	{
		name: "as AIPerf has it", engine: []string{"--ttft", "20ms", "--itl", "2ms"},
		args: []string{"--streaming", "--concurrency", "3", "--request-count", "30", "--isl", "30", "--osl", "5", "--goodput", "time_to_first_token:20000"}, expected: 30,
		aiperf: true,
	},
}

// A made is the output of a run.
type made struct {
	out, said string
	code      int
}

// exited checks the exit code of a run with this account.
func (c *run) exited(t *testing.T, m made, want account) {
	t.Helper()
	if code := c.exits(t, want); m.code != code {
		t.Errorf("want exit code %d, got %d\n%s", code, m.code, m.said)
	}
}

// begin runs `replayd run`. The func that it returns waits for the end.
func (c *run) begin(t *testing.T, e engine, dir, listen string, more ...string) (end func() made) {
	t.Helper()
	args := []string{"run"}
	if c.trace != "" {
		args = append(args, outside.Write(t, dir, "trace.jsonl", c.trace))
	}
	args = append(args, "--url", "http://"+e.address, "--artifact-dir", filepath.Join(dir, artifacts), "--records", filepath.Join(dir, records))
	if listen != "" {
		args = append(args, "--web.listen-address", listen, "--hold", linger.String())
	}
	if listen != "" && !c.atOnce {
		args = append(args, "--start", time.Now().Add(lead).Format(time.RFC3339Nano))
	}
	cmd := exec.CommandContext(t.Context(), binary, append(append(args, c.args...), more...)...)
	cmd.Dir = dir
	var out, said strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return func() made {
		err := cmd.Wait()
		if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return made{out: out.String(), said: said.String(), code: cmd.ProcessState.ExitCode()}
	}
}

// Names of the files that a run leaves in its folder.
const (
	artifacts = "artifacts"
	records   = "records.jsonl"
)
