package canary

import (
	"math"
	"math/rand/v2"
	"strings"
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

// fails makes a request end without an answer.
func (r *Request) fails(after time.Duration) {
	*r = Request{Sent: r.Sent, End: r.Sent.Add(after), Bad: true}
}

// A server that ran well for three hours, and then answers nothing, is found within 20 blocks, whether its requests fail at once or time out. A baseline
// that does the same convicts nobody.
func TestServerGoesDown(t *testing.T) {
	for _, after := range []time.Duration{30 * time.Second, 0, 10 * time.Minute} {
		if testing.Short() && after != 30*time.Second {
			continue
		}
		for _, side := range []Side{Candidate, Baseline} {
			s := newSource(3)
			down := s.at.Add(3 * time.Hour)
			s.form = func(p *Pair, _ *rand.Rand) {
				if p.At.After(down) {
					p.Requests[side].fails(after)
				}
			}
			watching := Defaults()
			watching.Mode = ModeWatch
			verdict, watch := New(Defaults()), New(watching)
			for s.at.Before(down.Add(25 * time.Minute)) {
				p := s.next()
				verdict.Add(p)
				watch.Add(p)
				if p.At.Equal(down) && verdict.Judge().Verdict != Pass {
					t.Errorf("after three hours: %+v", verdict.Judge())
				}
			}
			want, direction := Fail, More
			if side == Baseline {
				want, direction = Pass, Fewer
			}
			if j := verdict.Judge(); j.Verdict != want || want == Fail && j.Metric != Bad {
				t.Errorf("%v down, requests fail after %v: got %s of %v, want %s: %+v", side, after, j.Verdict, j.Metric, want, j)
			}
			if got := watch.Judge().Watch[Bad]; got.Direction != direction || got.Since.Before(down.Add(-2*time.Minute)) || got.Since.After(down.Add(2*time.Minute)) {
				t.Errorf("%v down, requests fail after %v: the watch says %+v, want %s since %v", side, after, got, direction, down)
			}
		}
	}
}

// A server that stops answering in the middle of a block is found in the time that 14 blocks take: the block does not wait for latencies, which no
// longer come.
func TestDownInMidBlock(t *testing.T) {
	for _, after := range []int{605, 615, 630} { // pairs, one a second
		s, pairs := newSource(7), 0
		s.form = func(p *Pair, _ *rand.Rand) {
			if pairs++; pairs > after {
				p.Requests[Candidate].fails(time.Millisecond)
			}
		}
		o := Defaults()
		o.Tolerance = 0 // no pass comes before
		j, minute := run(s, New(o))
		if j.Verdict != Fail || j.Metric != Bad || minute > 10+15 {
			t.Errorf("down after %d s: %s by %v after %d minutes", after, j.Verdict, j.Metric, minute)
		}
	}
}

// A candidate that does not carry a load with which the baseline is at ease fails by its queue. Neither fails where both do not carry it, or the
// baseline does not.
func TestServerFallsBehind(t *testing.T) {
	for _, c := range []struct {
		behind  [2]bool
		verdict Verdict
		metric  Metric
		text    string
	}{
		{[2]bool{Candidate: true}, Fail, Queued, "fail: in these 23 minutes, more requests of the candidate are queued than of the baseline, by more than 5 % of all; "},
		{[2]bool{Baseline: true}, Undecided, 0, "undecided: queues: on the baseline alone at every instant"},
		{[2]bool{true, true}, Undecided, 0, "undecided: queues: most requests are sent while earlier ones wait for their first token"},
	} {
		s := newSource(3)
		s.form = func(p *Pair, _ *rand.Rand) {
			for side, behind := range c.behind {
				if behind { // its first tokens come three seconds late
					p.Requests[side].First = p.At.Add(3 * time.Second)
				}
			}
		}
		comparison := New(Defaults())
		for range 40 * 60 {
			comparison.Add(s.next())
		}
		j := comparison.Judge()
		if j.Verdict != c.verdict || j.Verdict == Fail && j.Metric != c.metric || !strings.HasPrefix(j.Text(Defaults()), c.text) {
			t.Errorf("%v: got %s of %v: %s; want %q", c.behind, j.Verdict, j.Metric, j.Text(Defaults()), c.text)
		}
	}
}

// run gives a day of pairs, and returns the judgment at the first fail or pass, and the minutes to it.
func run(s *source, c *Comparison) (Judgment, int) {
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
		{"the candidate is frozen", func(p *Pair, _ *rand.Rand) { p.Requests[Candidate].fails(30 * time.Second) }, Fail, []Metric{Bad}, ""},
		{"both are down", func(p *Pair, rng *rand.Rand) { bad(Candidate, 1)(p, rng); bad(Baseline, 1)(p, rng) }, Undecided, nil, NoValues},
		{"not streamed", func(p *Pair, _ *rand.Rand) {
			for side := range p.Requests {
				r := &p.Requests[side]
				r.TTFT, r.TPOT, r.First = 0, 0, time.Time{}
			}
		}, Pass, nil, ""},
		{"void", func(p *Pair, rng *rand.Rand) { p.Void = late(rng.Float64() < 0.3) }, Undecided, nil, TooVoid},
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
	rollouts := sized(uint64(100), 20)
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

// A candidate that is equal for hours and then slower fails when as many blocks have spoken against it as for it. The change is no sign that blocks
// depend on each other.
func TestLateChangeFails(t *testing.T) {
	for _, hours := range []int{1, 3, 8} {
		for _, factor := range []float64{1.15, 1.5} {
			s, c := newSource(7), New(Defaults())
			for range hours * 3600 {
				c.Add(s.next())
			}
			s.form = func(p *Pair, _ *rand.Rand) { p.Requests[Candidate].lengthen(factor) }
			hour, j := 0, Judgment{}
			for ; hour < 2*hours+2 && j.Verdict != Fail; hour++ {
				for range 3600 {
					c.Add(s.next())
				}
				j = c.Judge()
			}
			if j.Verdict != Fail {
				t.Errorf("equal for %d hours, then %v times as slow for %d: %s %q, %+v", hours, factor, hour, j.Verdict, j.Reason, j.Metrics[TTFT])
			}
		}
	}
}

// The interval and the verdict never contradict each other, and a fail stays.
func TestIntervalAgreesWithVerdict(t *testing.T) {
	lives := sized(uint64(60), 12)
	for seed := range lives {
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

// A pair that was sent while an answer of the block before went on is not calm. The block waits for pairs that were sent later.
func TestOverlap(t *testing.T) {
	c := New(Defaults())
	var blocks []Block
	c.Ended = func(b Block) { blocks = append(blocks, b) }
	start := time.Unix(0, 0)
	calm := 0
	for n := range 241 {
		at := start.Add(time.Duration(n) * time.Second)
		long := time.Second / 2
		if n == 50 {
			long = time.Minute // it ends 50 s after the first block
		}
		p := Pair{At: at}
		for side := range p.Requests {
			p.Requests[side] = Request{Sent: at, TTFT: time.Second / 4, E2E: long, First: at.Add(time.Second / 4), End: at.Add(long)}
		}
		c.Add(&p)
		if p.Calm && n >= 60 && n < 120 {
			calm++
		}
	}
	if calm != 10 || len(blocks) != 3 || blocks[0].Calm != 60 || blocks[1].Calm != 20 || blocks[2].Calm != 60 {
		t.Errorf("%d calm pairs in the second minute, blocks %+v", calm, blocks)
	}
	// Answers that go on for longer are not waited for beyond five blocks.
	c, blocks = New(Defaults()), nil
	c.Ended = func(b Block) { blocks = append(blocks, b) }
	for n := range 1800 {
		at := start.Add(time.Duration(n) * time.Second)
		p := Pair{At: at}
		for side := range p.Requests {
			p.Requests[side] = Request{Sent: at, TTFT: time.Second / 4, E2E: time.Hour, First: at.Add(time.Second / 4), End: at.Add(time.Hour)}
		}
		c.Add(&p)
	}
	if len(blocks) < 5 || blocks[4].Calm < 20 || blocks[4].End.Sub(blocks[4].Begin) > 6*time.Minute {
		t.Errorf("answers of an hour: blocks %+v", blocks)
	}
}
