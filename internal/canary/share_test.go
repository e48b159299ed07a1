package canary

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// A candidate that is faster for most requests, and equal for the others, is not convicted for those.
func TestFasterHasNoTail(t *testing.T) {
	for name, form := range map[string]func(p *Pair, rng *rand.Rand){
		"a prefix cache for 80 %": func(p *Pair, rng *rand.Rand) {
			if rng.Float64() < 0.8 {
				p.Requests[Candidate].lengthen(0.5)
			}
		},
		"short prompts in half the time": func(p *Pair, rng *rand.Rand) {
			if rng.Float64() < 0.6 {
				p.Requests[Candidate].lengthen(0.5)
			}
		},
		"a little": func(p *Pair, rng *rand.Rand) {
			if rng.Float64() < 0.97 {
				p.Requests[Candidate].lengthen(0.6)
			}
		},
	} {
		s := newSource(3)
		s.form = form
		o := Defaults()
		watching := o
		watching.Mode = ModeWatch
		c, w := New(o), New(watching)
		for range 4 * 3600 {
			p := s.next()
			c.Add(p)
			w.Add(p)
		}
		if j := c.Judge(); j.Verdict != Pass {
			t.Errorf("%s: %s", name, j.Text(o))
		}
		if j := w.Judge(); j.Watch[Tail].Direction == More {
			t.Errorf("%s: %s", name, j.Text(watching))
		}
	}
}

// Requests are no tail while they are longer by less than the tolerance and the wander of a latency, even without noise.
// Beyond that they are one.
func TestToleratedHasNoTail(t *testing.T) {
	for _, c := range []struct {
		wander, longer float64
		fails          bool
	}{{0, 1.15, false}, {0, 1.3, true}, {0.1, 1.3, false}, {0.1, 1.45, true}} {
		s := newSource(4)
		s.noise = 0.001
		s.form = func(p *Pair, rng *rand.Rand) {
			if rng.Float64() < 0.1 {
				p.Requests[Candidate].lengthen(c.longer)
			}
		}
		o := Defaults()
		o.Tolerance, o.Wander = 0.2, c.wander
		one := New(o)
		for range 4 * 3600 {
			one.Add(s.next())
		}
		if j := one.Judge(); (j.Verdict == Fail) != c.fails {
			t.Errorf("wander %v, longer by ×%v: %s", c.wander, c.longer, j.Text(o))
		}
	}
}

// One burst of errors, long after all was well, convicts nobody. A small share of errors that stays does, and so does an outage.
func TestBadNeedsMoreThanABurst(t *testing.T) {
	for _, c := range []struct {
		name   string
		share  float64
		from   time.Duration
		long   time.Duration
		fails  bool
		within time.Duration
	}{
		{"burst of 5 % for 15 minutes", 0.05, time.Hour, 15 * time.Minute, false, 0},
		{"burst of 15 % for 40 minutes", 0.15, time.Hour, 40 * time.Minute, false, 0},
		{"outage", 1, time.Hour, 20 * time.Minute, true, 17 * time.Minute},
		{"1.5 % errors", 0.015, 0, 24 * time.Hour, true, 4 * time.Hour},
	} {
		s := newSource(9)
		begin := s.at.Add(c.from)
		s.form = func(p *Pair, rng *rand.Rand) {
			if !p.At.Before(begin) && p.At.Before(begin.Add(c.long)) && rng.Float64() < c.share {
				p.Requests[Candidate].fails(time.Second)
			}
		}
		comparison := New(Defaults())
		found := time.Duration(-1)
		for range 8 * 3600 {
			comparison.Add(s.next())
			if comparison.failed >= 0 && found < 0 {
				found = s.at.Sub(begin)
			}
		}
		if c.fails != (found >= 0) || found > c.within || c.fails && comparison.failed != Bad {
			t.Errorf("%s: found after %v by %d", c.name, found, comparison.failed)
		}
	}
}

// Of rollouts in which the candidate's excess is exactly the tolerance, the bound is ever below it in few: 1 in 100 may be. The share comes
// in spells, on one side at a time.
func TestExcessBoundHolds(t *testing.T) {
	rollouts := sized(400, 60)
	for _, spell := range []int{1, 5} { // blocks
		wrong := 0
		rng := rand.New(rand.NewPCG(11, uint64(spell)))
		for range rollouts {
			o := Defaults()
			o.MinTime = 0
			test := newTest(o, Bad)
			level := 0.0
			for n := range 480 {
				if n%spell == 0 {
					level = 2 * rng.Float64()
				}
				block := Tally{Pairs: 60}
				for range 60 {
					if rng.Float64() < level*(o.ToleranceBad+0.01) {
						block.Candidate++
					}
					if rng.Float64() < 0.01 {
						block.Baseline++
					}
				}
				test.share(Span{Tally: block}, time.Time{}, &o)
			}
			if test.Passed {
				wrong++
			}
		}
		if most := rollouts/100 + 6; wrong > most {
			t.Errorf("spells of %d blocks: the bound was below the true excess in %d of %d rollouts, want at most %d", spell, wrong, rollouts, most)
		}
	}
}

// Blocks that are all alike leave no doubt about their mean.
func TestExcessOfEqualBlocks(t *testing.T) {
	var e excess
	for range 10 {
		e.add(0.02)
	}
	if got := e.upper(0.01); math.Abs(got-0.02) > 1e-6 {
		t.Errorf("want a bound of 0.02, got %v", got)
	}
}

// Without any failure it takes a number of pairs to rule an excess out: by the definition of the bettors' mean.
func TestExcessWithoutFailures(t *testing.T) {
	won := func(n int, x float64) float64 {
		sum := 0.0
		for _, stake := range pairStakes {
			sum += math.Pow(1+stake*x, float64(n)) / float64(len(pairStakes))
		}
		return sum
	}
	least := 1
	for won(least, 0.005) < 100 {
		least++
	}
	if (Tally{Pairs: int64(least - 1)}).excludes(0.005, 0.01) || !(Tally{Pairs: int64(least)}).excludes(0.005, 0.01) {
		t.Errorf("want %d pairs to rule out 0.5 %%", least)
	}
	if got := (Tally{Pairs: int64(least)}).upper(0.01); math.Abs(got-0.005) > 1e-5 {
		t.Errorf("%d pairs: the bound is %v, want 0.005", least, got)
	}
}

// The estimate of the blocks to a pass is about right.
func TestExcessToPass(t *testing.T) {
	o := Defaults()
	o.MinTime = 0
	rng := rand.New(rand.NewPCG(5, 5))
	test := newTest(o, Bad)
	told, blocks := int64(0), int64(0)
	for ; !test.Passed && blocks < 2000; blocks++ {
		block := Tally{Pairs: 60}
		for range 60 {
			if rng.Float64() < 0.008 {
				block.Candidate++
			}
			if rng.Float64() < 0.008 {
				block.Baseline++
			}
		}
		test.share(Span{Tally: block}, time.Time{}, &o)
		if blocks == 60 {
			told = blocks + test.blocksToPass(&o)
		}
	}
	if told < blocks/3 || told > 3*blocks {
		t.Errorf("after 60 blocks: %d were estimated, and it took %d", told, blocks)
	}
}

// A share has no excess before it has a block: 0 would say that the servers are equal.
func TestExcessWithoutBlocks(t *testing.T) {
	judge := func(mode Mode) Judgment {
		o := Defaults()
		o.Mode = mode
		return New(o).Judge()
	}
	for _, s := range judge(ModeVerdict).Metrics {
		if !s.Metric.IsLatency() && !math.IsNaN(s.Excess) {
			t.Errorf("%s: the excess is %v", s.Metric, s.Excess)
		}
	}
	for _, s := range judge(ModeWatch).Watch {
		if !s.Metric.IsLatency() && !math.IsNaN(s.Excess) {
			t.Errorf("watch, %s: the excess is %v", s.Metric, s.Excess)
		}
	}
}
