//go:build canary

package canary_test

import "testing"

// fewPairs are tolerances that a minute of pairs can show to be kept. Those of the default take most of an hour.
var fewPairs = []string{"--tolerance-tail", "1", "--tolerance-queued", "0.3", "--tolerance-bad", "1"}

// With the default tolerance of latencies equal servers pass.
func TestEqualServersPass(t *testing.T) {
	t.Parallel()
	p := newPair(t, 101, nil)
	s := p.compare(t, "equal", longest, fewPairs...).wait(t)
	s.want(t, "pass", "")
	p.read(t, s.began).agree(t, s)
}

// One server may be on both sides. Each side has texts of its own, so it finds nothing of the other side's in the prefix cache.
func TestOneServerTwice(t *testing.T) {
	t.Parallel()
	p := &pair{dir: t.TempDir()}
	p.trace = steady(t, p.dir)
	p.baseline = newServer(t, p.dir, "baseline", 30, "--ttft", ttft.String(), "--cache-tokens", "1048576")
	p.baseline.start(t)
	p.candidate = &server{name: "candidate", address: p.baseline.address, log: p.baseline.log}
	s := p.compare(t, "one server twice", longest, fewPairs...).wait(t)
	s.want(t, "pass", "")
	l := p.read(t, s.began)
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
}
