//go:build canary

package canary_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"replayd/internal/sim"

	"replayd/test/outside"
)

// drain is how long replayd waits for the requests in flight at its end.
const drain = 30 * time.Second

// Answers that last longer than the comparison do not hold it up. The pairs that are in flight are closed, and memory stays small.
func TestLongAnswers(t *testing.T) {
	t.Parallel()
	answer := outside.Knob(t, "CANARY_ANSWER", time.Minute, time.ParseDuration)
	const tokens = 64
	for i, side := range []string{"baseline", "candidate"} {
		t.Run(side, func(t *testing.T) {
			t.Parallel()
			p := &pair{dir: t.TempDir()}
			p.trace = steady(t, p.dir, spacing, input, tokens)
			itl := map[string]string{"baseline": "1ms", "candidate": "1ms"}
			itl[side] = (answer / (tokens - 1)).String()
			p.baseline = newServer(t, p.dir, "baseline", 50+2*uint64(i), "--itl", itl["baseline"])
			p.candidate = newServer(t, p.dir, "candidate", 51+2*uint64(i), "--itl", itl["candidate"])
			p.baseline.start(t)
			p.candidate.start(t)
			s := p.compare(t, fmt.Sprintf("answers of %v, %s", answer, side), answer/3).wait(t)
			if most := answer/3 + drain + 5*time.Second; s.took > most {
				t.Errorf("want the end within %v, got %v", most, s.took)
			}
			if side == "baseline" && s.verdict == "fail" {
				t.Errorf("the candidate failed by %s, and the baseline has the long answers", s.metric)
			}
			if s.peak > 200 {
				t.Errorf("want at most 200 MiB, got %.0f", s.peak)
			}
			l := p.read(t, s.began)
			t.Logf("%d rows on both sides, %d on the baseline alone, %d on the candidate alone; %d pairs, %d void", len(l.pairs), l.onlyBaseline, l.onlyOther, s.pairs, s.void)
			if rows := len(l.pairs) + l.onlyBaseline + l.onlyOther; s.pairs+s.void < rows-1 {
				t.Errorf("want all %d rows closed, got %d pairs and %d void", rows, s.pairs, s.void)
			}
		})
	}
}

// SIGINT ends a comparison in its middle: exit code 130, a table, and the requests in flight have their answers. A second one does not wait for those.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	for i, c := range []struct {
		name   string
		itl    time.Duration // of each token
		twice  bool
		atMost time.Duration
	}{
		{"once", 300 * time.Millisecond, false, time.Duration(output())*300*time.Millisecond + 5*time.Second},
		{"twice", 8 * time.Second, true, 5 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newPair(t, 60+uint64(i), nil, "--itl", c.itl.String())
			compared := p.compare(t, "interrupted "+c.name, time.Hour)
			outside.Until(t, time.Minute, func() error {
				if a, b := p.baseline.running(t), p.candidate.running(t); a < 10 || b < 10 {
					return fmt.Errorf("want 10 requests in flight on each side, got %v and %v", a, b)
				}
				return nil
			})
			at, _ := compared.Signal(t, syscall.SIGINT)
			if c.twice {
				<-compared.decided(t)
				compared.Signal(t, syscall.SIGINT)
			}
			compared.Wait(t, c.atMost)
			s := compared.wait(t)
			t.Logf("ended %v after SIGINT", s.end.Sub(at).Round(time.Millisecond))
			if s.code != 130 || s.verdict != "undecided" || !strings.Contains(compared.Said(t), "before there was a verdict") {
				t.Errorf("want exit code 130 and no verdict, got %d and %s", s.code, s.verdict)
			}
			for _, server := range []*server{p.baseline, p.candidate} {
				outside.Until(t, 20*time.Second, func() error {
					if n := server.running(t); n > 0 {
						return fmt.Errorf("%s: want nothing in flight, got %v", server.name, n)
					}
					return nil
				})
				ends := map[string]int{}
				for _, e := range server.rows(t, s.began) {
					ends[e.Outcome]++
				}
				t.Logf("%s: requests by outcome %v", server.name, ends)
				if c.twice && ends[sim.Gone] < 10 || !c.twice && ends[sim.OK] != len(server.rows(t, s.began)) {
					t.Errorf("%s: want all answered after one SIGINT, and those in flight cut after two, got %v", server.name, ends)
				}
			}
		})
	}
}

// running is the number of requests in flight at a server, by its page.
func (s *server) running(t *testing.T) float64 {
	t.Helper()
	page, err := outside.Scrape(t.Context(), s.url())
	if err != nil {
		t.Fatal(err)
	}
	return page.Sum("vllm:num_requests_running")
}
