//go:build canary

package canary_test

import (
	"fmt"
	"testing"

	"replayd/test/machine"
)

// A prefill that is 10 % slower is found by its TTFT. The tokens after it come as fast as before.
func TestSlowerPrefillFails(t *testing.T) {
	t.Parallel()
	p := newPair(t, 2, []string{"--prefill-rate", fmt.Sprint(rate / 1.1)})
	s := p.compare(t, "prefill 10 % slower", longest).wait(t)
	s.want(t, "fail", "ttft")
	if (s.ratio["ttft"] < 1.05 || s.ratio["tpot"] > 1.03) && machine.Measures(t, "the ratios of the latencies") {
		t.Errorf("want TTFT about 1.1 times as long and TPOT the same, got %v", s.ratio)
	}
	p.read(t, s.began).agree(t, s)
}

// More errors are found.
func TestMoreErrorsFail(t *testing.T) {
	t.Parallel()
	p := newPair(t, 5, []string{"--fault-500", "0.41"}, "--fault-500", "0.01")
	s := p.compare(t, "40 % of errors more", 2*longest).wait(t)
	s.want(t, "fail", "bad")
	p.read(t, s.began).agree(t, s)
}
