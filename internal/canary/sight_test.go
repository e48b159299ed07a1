package canary

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// A comparison that sees no latencies says so within two blocks' time, and why; it never says that nothing has changed.
func TestBlind(t *testing.T) {
	for _, c := range []struct {
		name string
		form func(p *Pair, rng *rand.Rand)
		want Reason
		text string
	}{
		{"five in flight before a first token", func(p *Pair, _ *rand.Rand) {
			p.Requests[Baseline].lengthen(25)
			p.Requests[Candidate].lengthen(38)
		}, Queues, "most requests are sent while earlier ones wait for their first token, so too few are left to compare"},
		{"void", func(p *Pair, rng *rand.Rand) { p.Void = late(rng.Float64() < 0.3) }, TooVoid, "% of the pairs are void, mostly because replayd sent them late"},
		{"no answers", func(p *Pair, _ *rand.Rand) {
			p.Requests[Candidate].fails(0)
			p.Requests[Baseline].fails(0)
		}, NoValues, "of the latest 121 pairs 0 have answers from both sides, and none of the last 2m0s"},
		{"most fail", func(p *Pair, _ *rand.Rand) {
			if p.At.Unix()%60 != 7 {
				p.Requests[Candidate].fails(0)
				p.Requests[Baseline].fails(0)
			}
		}, FewCalm, "have latencies, and only "},
	} {
		for _, mode := range []Mode{ModeVerdict, ModeWatch} {
			o := Defaults()
			o.Mode = mode
			s, comparison := newSource(4), New(o)
			s.form = c.form
			first := time.Duration(0)
			for range 40 * 60 {
				comparison.Add(s.next())
				j := comparison.Judge()
				text := j.Text(o)
				if strings.Contains(text, "no change") || strings.HasPrefix(text, "pass") {
					t.Fatalf("%s, %s: %s", c.name, mode, text)
				}
				if j.Blind != "" && first == 0 {
					first = s.at.Sub(time.Unix(0, 0))
					if j.Blind != c.want || !strings.Contains(text, c.text) {
						t.Errorf("%s, %s: got %s: %s; want %s", c.name, mode, j.Blind, text, c.want)
					}
				}
			}
			if first == 0 || first > 2*time.Minute+2*time.Second {
				t.Errorf("%s, %s: blind after %v, want 2 minutes", c.name, mode, first)
			}
		}
	}
}

// A comparison that has seen well, and then sees nothing any more, becomes blind; with its next block it sees again.
func TestBlindForAWhile(t *testing.T) {
	o := Defaults()
	o.Mode = ModeWatch
	s, c := newSource(4), New(o)
	void := false
	s.form = func(p *Pair, _ *rand.Rand) { p.Void = late(void) }
	add := func(minutes int) Judgment {
		for range 60 * minutes {
			c.Add(s.next())
		}
		return c.Judge()
	}
	if j := add(30); j.Blind != "" || !strings.HasPrefix(j.Text(o), "no change proven") {
		t.Errorf("at first: %s", j.Text(o))
	}
	void = true
	if j := add(6); j.Blind != TooVoid || !strings.HasPrefix(j.Text(o), "blind: void: ") {
		t.Errorf("then: %s", j.Text(o))
	}
	void = false
	if j := add(6); j.Blind != "" {
		t.Errorf("again: %s", j.Text(o))
	}
}

// Servers that die in the middle of a block have answered some of its pairs. The reason later is still that they answer nothing.
func TestBlindAfterDeath(t *testing.T) {
	for alive := range 90 {
		s, c := newSource(uint64(alive)), New(Defaults())
		for range 20*60 + alive {
			c.Add(s.next())
		}
		s.form = func(p *Pair, _ *rand.Rand) {
			p.Requests[Candidate].fails(0)
			p.Requests[Baseline].fails(0)
		}
		for range 5 * 60 {
			c.Add(s.next())
		}
		if j := c.Judge(); j.Blind != NoValues {
			t.Errorf("%d seconds later: %q: %s", alive, j.Blind, j.Text(Defaults()))
		}
	}
}

// The time that a verdict takes is that of useful blocks: where every second block is void, it takes twice as long.
func TestTimeOfUsefulBlocks(t *testing.T) {
	s := newSource(4)
	start := s.at
	s.form = func(p *Pair, rng *rand.Rand) {
		p.Void = late(int(p.At.Sub(start).Minutes())%2 == 1 && rng.Float64() < 0.3)
	}
	c := New(Defaults())
	for range 8 * 60 {
		c.Add(s.next())
	}
	if j := c.Judge(); j.Useful < 3 || j.BlockTime < 100*time.Second || j.BlockTime > 140*time.Second {
		t.Errorf("%d useful blocks, each of %v, want about 2 minutes: %s", j.Useful, j.BlockTime, j.Text(Defaults()))
	}
}

// A ratio that changes has no interval: the comparison says when it changed, and a pass does not stand.
func TestChangedRatio(t *testing.T) {
	s, o := newSource(6), Defaults()
	o.Tolerance = 0.3
	start := s.at
	change := start.Add(2 * time.Hour)
	s.form = func(p *Pair, _ *rand.Rand) {
		if p.At.After(change) {
			p.Requests[Candidate].lengthen(1.15)
		}
	}
	c := New(o)
	for range 2 * 3600 {
		c.Add(s.next())
	}
	if j := c.Judge(); j.Verdict != Pass {
		t.Fatalf("before the change: %s", j.Text(o))
	}
	for range 4 * 3600 {
		c.Add(s.next())
	}
	j := c.Judge()
	got := j.Metrics[j.Metric]
	if j.Verdict != Undecided || j.Reason != Changed || got.Changed.Sub(change).Abs() > 3*time.Minute || !math.IsInf(got.Upper, 1) {
		t.Errorf("after the change at %v: %s, %+v", change, j.Text(o), got)
	}
	if text := j.Text(o); !strings.Contains(text, " changed at about 02:0") && !strings.Contains(text, " changed at about 01:5") {
		t.Errorf("got %q", text)
	}
}

// Two equal servers whose ratio wanders within the option keep the promise, and are convicted without it. A proposal from such blocks covers what they showed.
func TestWander(t *testing.T) {
	rollouts := sized(uint64(40), 10)
	const wander = 0.06
	failed := map[float64]int{}
	for seed := range rollouts {
		for _, allowed := range []float64{0, wander} {
			s, o := newSource(seed), Defaults()
			o.Wander = allowed
			o.Tolerance = 0.02
			level := 0.0
			s.form = func(p *Pair, rng *rand.Rand) {
				if p.At.Unix()%1800 == 1 { // for half an hour each
					level = wander * (2*rng.Float64() - 1)
				}
				p.Requests[Candidate].lengthen(math.Exp(level))
			}
			c := New(o)
			for range 2 * 3600 {
				c.Add(s.next())
			}
			if j := c.Judge(); j.Verdict == Fail {
				failed[allowed]++
			} else if allowed > 0 && (j.Reason != TooMuchWander && j.Reason != Changed || j.Reason == TooMuchWander && !strings.Contains(j.Text(o), "The least tolerance that can pass is above 6.184 %")) {
				t.Errorf("seed %d: %s", seed, j.Text(o))
			}
		}
	}
	if failed[wander] > 0 || failed[0] < int(rollouts)/10 {
		t.Errorf("of %d rollouts %d failed with wander, %d without", rollouts, failed[wander], failed[0])
	}
	var blocks []Block
	for n := range 60 {
		b := Block{Number: int64(n + 1)}
		for m := range b.Metrics {
			b.Metrics[m].Ratio = math.NaN()
		}
		b.Metrics[TTFT].Ratio = 1
		if n >= 30 && n < 45 {
			b.Metrics[TTFT].Ratio = math.Exp(-0.043)
		}
		blocks = append(blocks, b)
	}
	if w, ok := WanderOf(blocks); !ok || w.Wander != 0.045 || w.Metric != TTFT || w.Blocks != 60 {
		t.Errorf("got %v %v, want 0.045", w, ok)
	}
	if _, ok := WanderOf(blocks[:21]); ok {
		t.Error("21 blocks propose a wander")
	}
}
