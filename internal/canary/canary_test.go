package canary

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// A source makes pairs of two servers without queues, one a second.
type source struct {
	rng   *rand.Rand
	at    time.Time
	noise float64 // standard deviation of ln(time)
	base  time.Duration
	every time.Duration
	form  func(p *Pair, rng *rand.Rand) // changes a pair; nil: both sides are equal
}

func newSource(seed uint64) *source {
	return &source{rng: rand.New(rand.NewPCG(seed, 1)), at: time.Unix(0, 0), noise: 0.1, base: 200 * time.Millisecond, every: time.Second}
}

func (s *source) next() *Pair {
	s.at = s.at.Add(s.every)
	p := &Pair{At: s.at}
	for side := range p.Requests {
		draw := func(d time.Duration) time.Duration {
			return time.Duration(float64(d) * math.Exp(s.noise*s.rng.NormFloat64()))
		}
		ttft, tpot := draw(s.base), draw(s.base/10)
		p.Requests[side] = Request{Sent: s.at, TTFT: ttft, TPOT: tpot, E2E: ttft + 10*tpot, First: s.at.Add(ttft), End: s.at.Add(ttft + 10*tpot)}
	}
	if s.form != nil {
		s.form(p, s.rng)
	}
	return p
}

// lengthen makes a request's times f times as long.
func (r *Request) lengthen(f float64) {
	scale := func(d *time.Duration) { *d = time.Duration(float64(*d) * f) }
	scale(&r.TTFT)
	scale(&r.TPOT)
	scale(&r.E2E)
	r.First, r.End = r.Sent.Add(r.TTFT), r.Sent.Add(r.E2E)
}

// run gives a day of pairs, and returns the judgement at the first fail or pass, and the minutes to it.
func run(s *source, c *Comparison) (Judgement, int) {
	for minute := range 24 * 60 {
		for range int(time.Minute / s.every) {
			c.Add(s.next())
		}
		if j := c.Judge(); j.Verdict != Undecided {
			return j, minute
		}
	}
	return c.Judge(), -1
}

func TestVerdicts(t *testing.T) {
	scaled := func(f float64) func(p *Pair, rng *rand.Rand) {
		return func(p *Pair, _ *rand.Rand) { p.Requests[Candidate].lengthen(f) }
	}
	bad := func(side Side, share float64) func(p *Pair, rng *rand.Rand) {
		return func(p *Pair, rng *rand.Rand) {
			if rng.Float64() < share {
				r := &p.Requests[side]
				*r = Request{Sent: r.Sent, End: r.Sent.Add(time.Second), Bad: true}
			}
		}
	}
	for _, c := range []struct {
		name    string
		form    func(p *Pair, rng *rand.Rand)
		verdict Verdict
		metrics []Metric // one of them has failed
		reason  Reason
	}{
		{"equal", nil, Pass, nil, ""},
		{"faster", scaled(0.8), Pass, nil, ""},
		{"20 % slower", scaled(1.2), Fail, []Metric{TTFT, TPOT, E2E}, ""},
		{"only TTFT slower", func(p *Pair, _ *rand.Rand) {
			r := &p.Requests[Candidate]
			r.TTFT += r.TTFT / 5
			r.First = r.Sent.Add(r.TTFT)
		}, Fail, []Metric{TTFT}, ""},
		{"only TPOT slower", func(p *Pair, _ *rand.Rand) { p.Requests[Candidate].TPOT += p.Requests[Candidate].TPOT / 5 }, Fail, []Metric{TPOT}, ""},
		{"tail", func(p *Pair, rng *rand.Rand) {
			if rng.Float64() < 0.04 {
				p.Requests[Candidate].lengthen(3)
			}
		}, Fail, []Metric{Tail}, ""},
		{"errors", bad(Candidate, 0.03), Fail, []Metric{Bad}, ""},
		{"errors of the baseline", bad(Baseline, 0.03), Pass, nil, ""},
		{"the candidate is down", bad(Candidate, 1), Fail, []Metric{Bad}, ""},
		{"both are down", func(p *Pair, rng *rand.Rand) { bad(Candidate, 1)(p, rng); bad(Baseline, 1)(p, rng) }, Undecided, nil, NoValues},
		{"not streamed", func(p *Pair, _ *rand.Rand) {
			for side := range p.Requests {
				r := &p.Requests[side]
				r.TTFT, r.TPOT, r.First = 0, 0, time.Time{}
			}
		}, Pass, nil, ""},
		{"void", func(p *Pair, rng *rand.Rand) { p.Void = rng.Float64() < 0.3 }, Undecided, nil, FewBlocks},
		{"queue without end", func(p *Pair, _ *rand.Rand) {
			for side := range p.Requests {
				p.Requests[side].lengthen(100)
			}
		}, Undecided, nil, Queues},
		{"ties at the tolerance", func(p *Pair, _ *rand.Rand) {
			for side, d := range []time.Duration{100 * time.Millisecond, 105 * time.Millisecond} {
				r := &p.Requests[side]
				r.TTFT, r.TPOT, r.E2E, r.First, r.End = d, d, d, r.Sent.Add(d), r.Sent.Add(d)
			}
		}, Undecided, nil, FewBlocks},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSource(7)
			s.form = c.form
			o := Defaults()
			if c.name == "ties at the tolerance" {
				o.Tolerance = math.Expm1(math.Log(1.05)) // the very value of a block
			}
			comparison := New(o)
			j, minute := run(s, comparison)
			one := len(c.metrics) == 0
			for _, m := range c.metrics {
				one = one || j.Metric == m
			}
			if j.Verdict != c.verdict || j.Reason != c.reason || !one {
				t.Errorf("after %d minutes: got %s %q of %v, want %s %q of one of %v; %+v", minute, j.Verdict, j.Reason, j.Metric, c.verdict, c.reason, c.metrics, j)
			}
		})
	}
}

// Of 100 rollouts of 6 hours in which the candidate is slower by exactly the tolerance, or equal at a tolerance of 0, none fails: at most 1 in 100 may.
func TestNoFalseFails(t *testing.T) {
	rollouts := uint64(100)
	if testing.Short() {
		rollouts = 20
	}
	for _, tolerance := range []float64{0, 0.05} {
		failed := 0
		for seed := range rollouts {
			s := newSource(seed)
			s.every = 2 * time.Second
			s.form = func(p *Pair, _ *rand.Rand) { p.Requests[Candidate].lengthen(1 + tolerance) }
			o := Defaults()
			o.Tolerance = tolerance
			c := New(o)
			for range 6 * 1800 {
				c.Add(s.next())
			}
			if c.Judge().Verdict == Fail {
				failed++
			}
		}
		if failed > 5 { // the chance of more is 0.05 % where it is 1 % each
			t.Errorf("tolerance %v: %d of %d rollouts failed", tolerance, failed, rollouts)
		}
	}
}

// The interval and the verdict never contradict each other, and a fail stays.
func TestIntervalAgreesWithVerdict(t *testing.T) {
	for seed := range uint64(60) {
		s := newSource(seed)
		factor := 0.9 + 0.3*s.rng.Float64()
		s.form = func(p *Pair, _ *rand.Rand) { p.Requests[Candidate].lengthen(factor) }
		c := New(Defaults())
		failed := false
		for range 120 {
			for range 60 {
				c.Add(s.next())
			}
			j := c.Judge()
			if failed && j.Verdict != Fail {
				t.Fatalf("seed %d: %s after a fail", seed, j.Verdict)
			}
			failed = j.Verdict == Fail
			for _, m := range j.Metrics[:E2E+1] {
				if m.Lower > m.Upper {
					t.Fatalf("seed %d: %v is from %v to %v", seed, m.Metric, m.Lower, m.Upper)
				}
				if m.Failed && m.Lower < 1.05-1e-9 || j.Verdict == Pass && m.Upper > 1.05+1e-9 {
					t.Fatalf("seed %d: %s with %v from %v to %v", seed, j.Verdict, m.Metric, m.Lower, m.Upper)
				}
			}
			if j.Verdict == Undecided != (j.More != 0) {
				t.Fatalf("seed %d: %s needs %d more blocks", seed, j.Verdict, j.More)
			}
		}
	}
}

// A restart of an engine forgets the latencies and keeps the failures; a new epoch forgets all.
func TestRestart(t *testing.T) {
	s := newSource(3)
	s.form = func(p *Pair, rng *rand.Rand) { p.Requests[Candidate].Bad = rng.Float64() < 0.2 }
	c := New(Defaults())
	for range 600 {
		c.Add(s.next())
	}
	before := c.Judge()
	c.RestartLatencies()
	after := c.Judge()
	if before.Metrics[TTFT].Blocks == 0 || after.Metrics[TTFT].Blocks != 0 || after.Metrics[Tail].Blocks != 0 {
		t.Errorf("blocks of ttft %d, then %d, of tail %d", before.Metrics[TTFT].Blocks, after.Metrics[TTFT].Blocks, after.Metrics[Tail].Blocks)
	}
	if after.Metrics[Bad] != before.Metrics[Bad] && !math.IsNaN(before.Metrics[Bad].Ratio) {
		t.Errorf("bad: %+v, then %+v", before.Metrics[Bad], after.Metrics[Bad])
	}
	c.Restart()
	if j := c.Judge(); j.Pairs != (Pairs{}) || j.Metrics[Bad].Blocks != 0 {
		t.Errorf("a new epoch has %+v", j)
	}
}

// A burst waits for itself, and is calm; a burst that the one before it delays is not.
func TestCalm(t *testing.T) {
	c := New(Defaults())
	burst := func(at time.Time, took time.Duration) {
		for n := range 10 {
			p := Pair{At: at}
			for side := range p.Requests {
				d := took * time.Duration(n+1)
				p.Requests[side] = Request{Sent: at, TTFT: d, E2E: d, First: at.Add(d), End: at.Add(d)}
			}
			c.Add(&p)
		}
	}
	start := time.Unix(0, 0)
	burst(start, 50*time.Millisecond)                        // done after 500 ms
	burst(start.Add(time.Second), 200*time.Millisecond)      // done after 2 s
	burst(start.Add(2*time.Second), 50*time.Millisecond)     // meets the one before
	burst(start.Add(3500*time.Millisecond), time.Nanosecond) // meets none
	if calm, queued := len(c.block.logs[E2E]), c.block.queued; calm != 30 || queued != [2]int{10, 10} {
		t.Errorf("%d calm pairs and %v queued, want 30 and 10 on each side", calm, queued)
	}
}

// Memory does not grow with pairs and blocks.
func TestConstantMemory(t *testing.T) {
	s := newSource(5)
	c := New(Defaults())
	for range 3600 {
		c.Add(s.next())
	}
	p := s.next()
	if n := testing.AllocsPerRun(1, func() {
		for range 100_000 {
			p.At = p.At.Add(time.Second)
			for side := range p.Requests {
				p.Requests[side].Sent, p.Requests[side].First = p.At, p.At.Add(p.Requests[side].TTFT)
			}
			c.Add(p)
		}
	}); n > 0 {
		t.Errorf("%v allocations in 1,666 blocks", n)
	}
}

func TestOptions(t *testing.T) {
	if err := Defaults().Check(); err != nil {
		t.Error(err)
	}
	want := `tolerance: want a number from 0 to 10, got NaN
alpha: want a number from 1e-09 to 0.5, got 1
min_pairs: want an integer from 1 to 4096, got 0
min_time: want 0 to 24h, got -1s
tolerance_tail: want a number from 0 to 1, got -1
tolerance_queued: want a number from 0 to 1, got 2
tolerance_bad: want a number from 0 to 1, got +Inf`
	err := Options{Tolerance: math.NaN(), Alpha: 1, MinTime: -time.Second, ToleranceTail: -1, ToleranceQueued: 2, ToleranceBad: math.Inf(1)}.Check()
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}
