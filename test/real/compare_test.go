//go:build real

package real

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"replayd/test/outside"
)

// TestCompare compares a llama-server with an equal one and with one that computes prompts in pieces of 32 tokens instead of 512, in turns for REAL_COMPARE.
// On two shared cores more threads would make a server slower or faster as the machine has other work. Small pieces make it slower on any machine:
// TTFT is at least half as long again.
func TestCompare(t *testing.T) {
	length := outside.Knob(t, "REAL_COMPARE", 5*time.Minute, time.ParseDuration)
	block := length / 60 // a verdict needs a dozen, which also have 20 pairs each
	dir := t.TempDir()
	replayd := filepath.Join(dir, "replayd")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", replayd, "./cmd/replayd")
	build.Dir = repository
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, said)
	}
	rows := make([]outside.Row, 3600) // an hour, one a second: a machine with other work carries that too
	for i := range rows {
		rows[i] = outside.Row{Timestamp: int64(1000 * i), Input: 1500, Output: 8}
	}
	trace := outside.Write(t, dir, "trace.jsonl", outside.Trace(rows))
	baseline, equal, slower := startLlama(t), startLlama(t), startLlama(t, "--ubatch-size", "32")

	verdicts := map[string]int{}
	last := regexp.MustCompile(`(?m)^verdict: (.*)$`)
	compare := func(name string, candidate llama, longest time.Duration) (verdict string, code int) {
		began := time.Now()
		c := exec.CommandContext(t.Context(), replayd, "compare", trace, "--baseline", baseline.url, "--candidate", candidate.url, "--api", "completions",
			"--min-time", block.String(), "--for", longest.String())
		said, err := c.Output()
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			code = exit.ExitCode()
		} else if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s, after %v, exit code %d\n%s", name, time.Since(began).Round(time.Second), code, said)
		found := last.FindStringSubmatch(string(said))
		if found == nil {
			t.Fatalf("want a verdict, got exit code %d and\n%s", code, said)
		}
		verdicts[fmt.Sprint(name, ": exit code ", code)]++
		return found[1], code
	}
	slow := regexp.MustCompile(`^fail: in these .*, (ttft|e2e) of the candidate is longer than the baseline's by more than 5 %`)
	for until := time.Now().Add(length); ; {
		began := time.Now()
		if verdict, code := compare("prompts in pieces of 32 tokens", slower, length); code != 3 || !slow.MatchString(verdict) {
			t.Errorf("want the slower server convicted by its TTFT or e2e, got exit code %d and %s", code, verdict)
		}
		// The equal server is looked at for at least as long, and longer while there is no verdict.
		if verdict, code := compare("equal", equal, max(time.Since(began), 15*block)); code == 3 {
			t.Errorf("want an equal server not convicted, got %s", verdict)
		}
		if time.Now().After(until) {
			break
		}
	}
	t.Logf("comparisons of %v: %v", length, verdicts)
}
