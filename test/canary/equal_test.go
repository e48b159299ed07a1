//go:build canary

package canary_test

import (
	"fmt"
	"testing"
	"time"

	"replayd/test/outside"
)

// equalFor is the time for which equal servers are compared.
func equalFor(t *testing.T) time.Duration {
	t.Helper()
	return outside.Knob(t, "CANARY_FOR", 40*time.Second, time.ParseDuration)
}

// Equal servers never fail, for as long as one looks. With the tolerance 0 there is no pass either: it is not shown that the candidate is faster.
func TestEqualServersNeverFail(t *testing.T) {
	t.Parallel()
	p := newPair(t, 1, nil)
	s := p.compare(t, "equal, tolerance 0", equalFor(t), "--tolerance", "0").wait(t)
	if s.verdict == "fail" {
		t.Errorf("equal servers failed by %s", s.metric)
	}
	p.read(t, s.began).agree(t, s)
}

// fewPairs are tolerances that a minute of pairs can show to be kept. Those of the default take most of an hour.
var fewPairs = []string{"--tolerance-tail", "1", "--tolerance-queued", "0.3", "--tolerance-bad", "1"}

// With the default tolerance of latencies equal servers pass, again and again.
func TestEqualServersPass(t *testing.T) {
	t.Parallel()
	until := time.Now().Add(equalFor(t))
	for i := 1; i == 1 || time.Now().Before(until); i++ {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			p := newPair(t, uint64(100+i), nil)
			s := p.compare(t, fmt.Sprintf("equal, tolerance 5 %%, number %d", i), longest(t), fewPairs...).wait(t)
			s.want(t, "pass", "")
			p.read(t, s.began).agree(t, s)
		})
	}
}

// One server may be on both sides. Each side has texts of its own, so it finds nothing of the other side's in the prefix cache.
func TestOneServerTwice(t *testing.T) {
	t.Parallel()
	for i, c := range []struct {
		name    string
		flags   []string
		verdict string
		longest time.Duration
	}{
		{"prompts side by side", []string{"--ttft", ttft().String()}, "pass", longest(t)},
		// The second of two prompts waits for the first: its TTFT is twice as long. No side is the second more often than the other.
		{"prompts one at a time", nil, "", 25 * block(t)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := &pair{dir: t.TempDir()}
			p.trace = steady(t, p.dir, spacing, input, output())
			p.baseline = newServer(t, p.dir, "baseline", 30+uint64(i), append(c.flags, "--cache-tokens", "1048576")...)
			p.baseline.start(t)
			p.candidate = &server{name: "candidate", address: p.baseline.address, log: p.baseline.log}
			s := p.compare(t, "one server twice, "+c.name, c.longest, fewPairs...).wait(t)
			if c.verdict != "" {
				s.want(t, c.verdict, "")
			} else if s.verdict == "fail" {
				t.Errorf("a server failed against itself by %s", s.metric)
			}
			l := p.read(t, s.began)
			l.gaps(t)
			cached := 0
			for _, x := range l.pairs {
				if x.baseline.BodySHA256 == x.candidate.BodySHA256 {
					t.Errorf("%s: both sides have the same text", x.baseline.ID)
				}
				cached += x.baseline.CachedTokens + x.candidate.CachedTokens
			}
			if len(l.pairs) < 100 || cached > 0 {
				t.Errorf("want at least 100 pairs without a cached token, got %d with %d", len(l.pairs), cached)
			}
		})
	}
}
