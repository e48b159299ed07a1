//go:build canary

package canary_test

import (
	"context"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"replayd/bench/lab"

	"replayd/test/outside"
)

// The two requests of a pair arrive within a fraction of a millisecond, and each side is first about as often as the other. The instants are the kernel's:
// bench/stamp keeps the time at which the last segment of a request came. This test has the machine for itself.
func TestGap(t *testing.T) {
	const length = 10 * time.Second
	stamp := filepath.Join(t.TempDir(), "stamp")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", stamp, "replayd/bench/stamp")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	p := &pair{dir: t.TempDir()}
	p.trace = steady(t, p.dir)
	p.baseline, p.candidate = stamped(t, p.dir, stamp, "baseline"), stamped(t, p.dir, stamp, "candidate")
	// With the tolerance 0 two equal servers are compared for the whole time.
	s := p.compare(t, "gap", length, "--tolerance", "0").wait(t)
	if s.verdict == "fail" {
		t.Errorf("equal servers failed by %s", s.metric)
	}
	base, cand := p.baseline.stamps(t), p.candidate.stamps(t)
	var gaps lab.Sample
	first := 0
	for place, b := range base {
		c, ok := cand[place]
		if !ok {
			continue
		}
		if b.Arrival >= b.Read || c.Arrival >= c.Read {
			t.Fatalf("%s: want the kernel's time of arrival, which is before the read: %+v, %+v", place, b, c)
		}
		gaps = append(gaps, math.Abs(float64(c.Arrival-b.Arrival))/1e3)
		if b.Arrival < c.Arrival {
			first++
		}
	}
	n := len(gaps)
	if want := int(length/spacing) * 8 / 10; n < want {
		t.Fatalf("want at least %d rows in both logs, got %d", want, n)
	}
	share := float64(first) / float64(n)
	t.Logf("between the arrivals of a pair's requests: p50 %.0f µs, p99 %.0f µs",
		gaps.Quantile(0.5), gaps.Quantile(0.99))
	// Six standard deviations of a fair coin.
	if off := 6 * 0.5 / math.Sqrt(float64(n)); math.Abs(share-0.5) > off {
		t.Errorf("want the baseline first in half of the pairs, at most %.2f off, got %.3f", off, share)
	}
}

// stamped starts bench/stamp, which writes its log at its end.
func stamped(t *testing.T, dir, program, name string) *server {
	t.Helper()
	s := &server{name: name, log: filepath.Join(dir, name+".jsonl")}
	s.process = outside.Start(t, filepath.Join(dir, name+".out"), program, "--ttft", "36ms", "--itl", "8ms", "--log", s.log)
	outside.Until(t, func() error {
		if _, address, ok := strings.Cut(s.process.Said(t), "listening on "); ok {
			s.address = strings.TrimSpace(address)
			return nil
		}
		return context.DeadlineExceeded
	})
	return s
}

// stamps ends the server and returns its requests by loop/row.
func (s *server) stamps(t *testing.T) map[string]lab.Stamped {
	t.Helper()
	s.process.Term(t)
	all, err := lab.ReadLines[lab.Stamped](s.log)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]lab.Stamped{}
	for _, a := range all {
		if workload, place, _ := strings.Cut(a.ID, "/"); strings.HasPrefix(workload, "compare") {
			rows[place] = a
		}
	}
	return rows
}
