package canary

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"
	"time"
)

// By enumeration of all sequences of 16 bits, whenever an engine restarts within them, the expectation of the evidence is at most 1.
func TestRestartsAreFair(t *testing.T) {
	const most = 16
	for _, restarts := range []uint32{0, 1 << 3, 1<<3 | 1<<4 | 1<<9, 0x5555, 0xffff} { // before which bits
		sum := 0.0
		for sequence := range uint32(1 << most) {
			var r Restarts
			e := 1.0
			for i := range most {
				if restarts>>i&1 == 1 {
					r.Restart()
				}
				r.Add(sequence>>i&1 == 1)
				if e = math.Pow(10, r.Log10()); e >= 6 { // stop there, which must not help
					break
				}
			}
			sum += e
		}
		if mean := sum / (1 << most); mean > 1+1e-9 {
			t.Errorf("%d restarts: the mean is %v, want at most 1", bits.OnesCount32(restarts), mean)
		}
	}
}

// A server exactly slower by the tolerance, whose engine restarts each half hour, passes in few days: the error is spent once.
func TestRestartsSpendTheErrorOnce(t *testing.T) {
	days, passed, failed := sized(uint64(100), 20), 0, 0
	for seed := range days {
		s := newSource(seed)
		s.every = 2 * time.Second
		s.form = func(p *Pair, _ *rand.Rand) { p.Requests[Candidate].lengthen(1.05) }
		c := New(Defaults())
		for n := range 24 * 1800 {
			if n%900 == 899 {
				c.RestartLatencies()
			}
			c.Add(s.next())
			if n%900 == 898 {
				j := c.Judge()
				if j.Metrics[TTFT].Passed && j.Metrics[TPOT].Passed && j.Metrics[E2E].Passed {
					passed++
				}
				if j.Verdict == Fail {
					failed++
				}
			}
		}
	}
	// Three latencies that must all pass. Without the sum of weights each passed in a fifth of the days.
	if passed > int(days)/20+1 || failed > int(days)/20+1 {
		t.Errorf("of %d days %d passed and %d failed, want 1 in 100 at most", days, passed, failed)
	}
}

// What evidence there was before a restart of an engine still counts.
func TestEvidenceOutlivesARestart(t *testing.T) {
	s := newSource(1)
	s.form = func(p *Pair, _ *rand.Rand) { p.Requests[Candidate].lengthen(1.2) }
	c := New(Defaults())
	for range 12 * 60 {
		c.Add(s.next())
	}
	before := c.Judge()
	c.RestartLatencies()
	after := c.Judge()
	if math.Abs(after.Metrics[TTFT].WorseLog10-before.Metrics[TTFT].WorseLog10) > 0.01 || before.Metrics[TTFT].WorseLog10 < 2 {
		t.Errorf("evidence of 10^%.2f is 10^%.2f after a restart", before.Metrics[TTFT].WorseLog10, after.Metrics[TTFT].WorseLog10)
	}
}

// While the servers warm up pairs are void, which is no reason to see nothing.
func TestWarmUp(t *testing.T) {
	o := Defaults()
	o.WarmUp = 10 * time.Minute
	c, s := New(o), newSource(2)
	add := func(n int) Judgment {
		for range n {
			c.Add(s.next())
		}
		return c.Judge()
	}
	j := add(9 * 60)
	if j.Pairs.Voids[VoidWarmUp] != 540 || j.Reason != NoData || j.Blind != "" || j.Text(o) != "undecided: no_data: the servers warm up until 00:10:01 UTC (warm_up)" {
		t.Errorf("in the warm-up: %+v: %s", j, j.Text(o))
	}
	if j = add(6 * 60); j.Pairs.Voids[VoidWarmUp] != 600 || j.Metrics[TTFT].Blocks < 3 {
		t.Errorf("after the warm-up: %+v", j)
	}
	c.RestartLatencies()
	if j = add(60); j.Pairs.Voids[VoidWarmUp] != 660 {
		t.Errorf("after a restart of an engine: %v", j.Pairs.Voids)
	}
}

// What has failed or passed nearly before a restart is not decided by the first block after it: the excess is that of all blocks, and a pass needs that
// the blocks since then do not speak against it.
func TestFirstBlockAfterARestart(t *testing.T) {
	o := Defaults()
	tail := newTest(o, Tail)
	for range 20 { // 0.6 % more, where 1 % is tolerated
		tail.share(Span{Tally: Tally{Candidate: 6, Pairs: 1000}}, time.Time{}, &o)
	}
	tail.restart(o)
	tail.share(Span{Tally: Tally{Candidate: 1, Pairs: 60}}, time.Time{}, &o)
	if tail.hasFailed(o.FailLog10()) || tail.worseLog10() < o.FailLog10() {
		t.Errorf("evidence 10^%.1f, an excess of %.4f: failed %v", tail.worseLog10(), tail.total(), tail.hasFailed(o.FailLog10()))
	}
	ttft := newTest(o, TTFT)
	for range 30 {
		ttft.latency(0, time.Time{}, &o)
	}
	if !ttft.passes() {
		t.Error("30 equal blocks do not pass")
	}
	ttft.restart(o)
	for range 5 {
		ttft.latency(math.Log(1.2), time.Time{}, &o)
		if ttft.passes() {
			t.Error("slower blocks after a restart pass by those before it")
		}
	}
}

// A candidate that was faster at first and is slower by more than the tolerance since then does not pass.
func TestPassNeedsPresentEvidence(t *testing.T) {
	s, o := newSource(8), Defaults()
	change := s.at.Add(12 * time.Minute)
	s.form = func(p *Pair, _ *rand.Rand) {
		factor := 0.98
		if p.At.After(change) {
			factor = 1.09
		}
		p.Requests[Candidate].lengthen(factor)
	}
	c := New(o)
	for range 120 {
		for range 60 {
			c.Add(s.next())
		}
		if j := c.Judge(); j.Verdict == Pass {
			t.Fatal(j.Text(o))
		}
	}
}
