//go:build canary

package canary_test

import (
	"fmt"
	"testing"
	"time"

	"replayd/bench/lab"

	"replayd/test/machine"
	"replayd/test/outside"
)

// longest is the time in which a verdict is expected: 12 blocks are the least for a fail. A machine with other work makes pairs void.
func longest(t *testing.T) time.Duration {
	t.Helper()
	return 40*block(t) + 20*time.Second
}

// A prefill that is 10 % slower is found by its TTFT. The tokens after it come as fast as before.
func TestSlowerPrefillFails(t *testing.T) {
	t.Parallel()
	p := newPair(t, 2, []string{"--prefill-rate", fmt.Sprint(rate() / 1.1)})
	s := p.compare(t, "prefill 10 % slower", longest(t)).wait(t)
	s.want(t, "fail", "ttft")
	if (s.ratio["ttft"] < 1.05 || s.ratio["tpot"] > 1.03) && machine.Measures(t, "the ratios of the latencies") {
		t.Errorf("want TTFT about 1.1 times as long and TPOT the same, got %v", s.ratio)
	}
	p.read(t, s.began).agree(t, s)
}

// A few requests that take twice as long double the 99th percentile, and leave the median where it was. A slow request has its first token before the
// next one is sent, so none waits for it.
func TestSlowTailFails(t *testing.T) {
	t.Parallel()
	// Where a tenth is slow, a block of 2 s has a few of them.
	share := outside.Knob(t, "CANARY_SLOW", 0.1, number)
	p := newPair(t, 3, []string{"--slow-share", fmt.Sprint(share), "--slow-factor", "2"})
	// The tail is counted from 200 pairs on, and small blocks could bring a pass before it has enough of them. With this tolerance they do not.
	s := p.compare(t, fmt.Sprintf("%v %% of requests twice as long", 100*share), 2*longest(t), "--tolerance", "0.02").wait(t)
	s.want(t, "fail", "tail")
	l := p.read(t, s.began)
	l.agree(t, s)
	b, c := l.firsts()
	t.Logf("TTFT by the servers' logs, ms: baseline p50 %.1f, p99 %.1f; candidate p50 %.1f, p99 %.1f", b.Quantile(0.5), b.Quantile(0.99), c.Quantile(0.5), c.Quantile(0.99))
	long := shareAbove(c, 1.6*b.Quantile(0.5)) - shareAbove(b, 1.6*b.Quantile(0.5))
	if p50 := c.Quantile(0.5) / b.Quantile(0.5); p50 > 1.03 || long < share/2 || long > 2*share {
		t.Errorf("want an equal median and %v more long requests, got %.3f times the median and %.3f", share, p50, long)
	}
	if s.excess["queued"] > 0.01 {
		t.Errorf("want no queue behind slow requests, got an excess of %v", s.excess["queued"])
	}
}

func shareAbove(s lab.Sample, bound float64) float64 {
	n := 0
	for _, v := range s {
		if v > bound {
			n++
		}
	}
	return float64(n) / float64(len(s))
}

// More errors are found, whether or not the baseline has some too.
func TestMoreErrorsFail(t *testing.T) {
	t.Parallel()
	more := outside.Knob(t, "CANARY_ERRORS", 0.4, number) // an outage; few errors are found in blocks that are ten times as long
	for i, base := range []float64{0, 0.01} {
		t.Run(fmt.Sprint(base), func(t *testing.T) {
			t.Parallel()
			p := newPair(t, 4+uint64(i), []string{"--fault-500", fmt.Sprint(base + more)}, "--fault-500", fmt.Sprint(base))
			s := p.compare(t, fmt.Sprintf("%v %% of errors, baseline %v %%", 100*(base+more), 100*base), 2*longest(t)).wait(t)
			s.want(t, "fail", "bad")
			p.read(t, s.began).agree(t, s)
		})
	}
}
