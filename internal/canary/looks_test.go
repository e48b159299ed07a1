package canary

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// onPods sends the rows of a source round all pairs of pods, as replay does: each round of a side's pods begins with another one, by chance. Each pod
// has a factor of its own.
func onPods(s *source, factors [2][]float64) {
	row, first := 0, [2]int{}
	s.form = func(p *Pair, rng *rand.Rand) {
		for side, of := range factors {
			if row%len(of) == 0 {
				first[side] = rng.IntN(len(of))
			}
		}
		pods := [2]int{}
		for side, of := range factors {
			pods[side] = (row + first[side]) % len(of)
		}
		row++
		for side, pod := range pods {
			p.Requests[side].Pod = uint16(pod + 1)
			p.Requests[side].lengthen(factors[side][pod])
		}
	}
}

// same returns the factor 1 for each of some pods.
func same(n int, factor float64) []float64 {
	all := make([]float64, n)
	for i := range all {
		all[i] = factor
	}
	return all
}

// A candidate with a TTFT of 1.5 s against 1.0 s, at 5 requests per second: on one pod a side hardly any instant is without a queue, and the comparison is
// blind within two blocks. On two pods a side, each with a queue of its own, it fails.
func TestPodsHaveQueuesOfTheirOwn(t *testing.T) {
	for _, pods := range []int{1, 2, 4} {
		worst := time.Duration(0)
		for seed := range sized(uint64(20), 5) {
			s := newSource(seed)
			s.noise, s.base = 0.01, time.Second
			onPods(s, [2][]float64{same(pods, 1), same(pods, 1.5)})
			c := New(Defaults())
			begin, long := s.at, time.Hour
			if pods == 1 {
				long = 125 * time.Second
			}
			isOver := false
			c.Ended = func(Block) { isOver = c.Judge().Verdict != Undecided }
			for !isOver && s.at.Sub(begin) < long {
				s.every = time.Duration(float64(200*time.Millisecond) * s.rng.ExpFloat64())
				c.Add(s.next())
			}
			worst = max(worst, s.at.Sub(begin))
			j := c.Judge()
			if pods == 1 && j.Blind != Queues || pods > 1 && (j.Verdict != Fail || !j.Metric.IsLatency()) {
				t.Errorf("%d pods a side, seed %d: %s", pods, seed, j.Text(Defaults()))
			}
		}
		if t.Logf("%d pods a side: %v at most", pods, worst.Round(time.Second)); worst > 40*time.Minute {
			t.Errorf("%d pods a side: a verdict takes up to %v", pods, worst)
		}
	}
}

// Pods of one side differ. Of equal versions at most the promised share fails, with any number of pods, and the pair's evidence, which asks whether these
// pods are slower, convicts most.
func TestLooksKeepTheirPromise(t *testing.T) {
	o := Defaults()
	o.Alpha = 0.1
	rng := rand.New(rand.NewPCG(1, 2))
	lives := sized(500, 100)
	for _, n := range [][2]int{{3, 3}, {4, 4}, {6, 6}, {8, 8}} {
		fails, passes := 0, 0
		for range lives {
			l := &looks{}
			// Latencies exactly at the tolerance: a fail is wrong, and so is a pass.
			drawn := func(n int, middle float64) (all []float64) {
				for range n {
					all = append(all, middle+0.03*rng.NormFloat64())
				}
				return all
			}
			base, cand := drawn(n[Baseline], 0), drawn(n[Candidate], math.Log1p(o.Tolerance))
			for l.Done = range len(lookTimes) { // looks that see more of the same pods
				l.Pods = [2][]podSums{sums(base, -1, mean(cand), rng), sums(cand, 1, -mean(base), rng)}
				l.look(&o)
				if l.Verdict != Undecided {
					break
				}
			}
			fails += int(one(l.Verdict == Fail))
			passes += int(one(l.Verdict == Pass))
		}
		t.Logf("%d and %d pods: %d fails and %d passes of %d", n[0], n[1], fails, passes, lives)
		if most := 1.2*o.Alpha*float64(lives) + 5; float64(fails) > most || float64(passes) > most {
			t.Errorf("%d and %d pods: %d fails and %d passes of %d, want at most %.0f", n[0], n[1], fails, passes, lives, most)
		}
	}
}

// sums are those of pods of a side, each with a factor, against the other side's mean.
func sums(factors []float64, sign, other float64, rng *rand.Rand) (all []podSums) {
	for _, f := range factors {
		s := podSums{Judged: 1000}
		for m := range s.Logs {
			s.Calm[m] = 1000
			s.Logs[m] = 1000 * (sign*f + other + 0.003*rng.NormFloat64())
		}
		all = append(all, s)
	}
	return all
}

// A version that is slower on every pod is found at a look. The page promises 9 of 10 such finds, and the looks keep that.
func TestLooksFindASlowVersion(t *testing.T) {
	o := Defaults()
	for _, n := range []int{3, 4, 8} {
		found, lives := 0, sized(2000, 300)
		rng := rand.New(rand.NewPCG(7, uint64(n)))
		state := PodsState{}
		state.Metrics[TTFT].Spread = 0.02
		slower := state.Finds(TTFT, n, o)
		for range lives {
			l := &looks{}
			var base, cand []float64
			for range n {
				base = append(base, 0.02*rng.NormFloat64())
				cand = append(cand, math.Log(slower)+0.02*rng.NormFloat64())
			}
			l.Pods = [2][]podSums{sums(base, -1, mean(cand), rng), sums(cand, 1, -mean(base), rng)}
			for m := range l.Pods {
				for i := range l.Pods[m] {
					l.Pods[m][i].Calm[TPOT], l.Pods[m][i].Calm[E2E] = 0, 0
				}
			}
			l.look(&o)
			found += int(one(l.Verdict == Fail))
		}
		share := float64(found) / float64(lives)
		t.Logf("%d pods a side find a version that is %.1f %% slower in %.1f %% of %d cases", n, 100*(slower-1), 100*share, lives)
		if share < 0.87 || share > 0.93 {
			t.Errorf("%d pods a side: want about 90 %%", n)
		}
	}
}

func TestVersion(t *testing.T) {
	uneven := func(middle float64, n int) (all []float64) {
		for i := range n {
			all = append(all, middle*(1+0.01*float64(i%3)))
		}
		return all
	}
	play := func(factors [2][]float64, o Options, minutes int, then func(c *Comparison, minute int)) Judgment {
		s := newSource(3)
		s.noise, s.every = 0.03, 250*time.Millisecond
		onPods(s, factors)
		c := New(o)
		for minute := range minutes {
			for range 240 {
				c.Add(s.next())
			}
			if then != nil {
				then(c, minute)
			}
		}
		return c.Judge()
	}
	pair, pods := Defaults(), Defaults()
	pods.Require = ScopePods
	for _, c := range []struct {
		name    string
		factors [2][]float64
		options Options
		minutes int
		then    func(c *Comparison, minute int)
		verdict Verdict
		scope   Scope
		text    string
	}{
		{"slower on each pod", [2][]float64{uneven(1, 4), uneven(1.3, 4)}, pair, 40, nil, Fail, ScopePods, "Of the version: over 4 and 4 pods after 15 minutes, ttft of the candidate is longer than the baseline's by more than 5 %: ttft × 1.3"},
		{"slower on one pod of four", [2][]float64{uneven(1, 4), {1, 1, 1, 2.6}}, pods, 125, nil, Undecided, ScopePods, "undecided: next_look: none of the 4 looks has decided, and there are no more. These pods alone: "},
		{"slower, for the version", [2][]float64{uneven(1, 4), uneven(1.3, 4)}, pods, 20, nil, Fail, ScopePods, "fail: over 4 and 4 pods after 15 minutes, ttft of the candidate is longer than the baseline's by more than 5 %: ttft × 1.3"},
		{"equal", [2][]float64{uneven(1, 8), uneven(1, 8)}, pods, 65, nil, Pass, ScopePods, "pass: over 8 and 8 pods after 60 minutes, no latency"},
		{"before a look", [2][]float64{uneven(1, 4), uneven(1, 4)}, pods, 14, nil, Undecided, ScopePods, "undecided: next_look: the first look at the pods is 15 minutes after the first pair. These pods alone: undecided"},
		{"two pods", [2][]float64{uneven(1, 2), uneven(1.3, 2)}, pods, 60, nil, Undecided, ScopePods, "undecided: few_pods: 2 and 2 pods, and a sentence about a version takes 3 on each side. These pods alone: fail"},
		{"unequal numbers", [2][]float64{uneven(1, 4), uneven(1.3, 3)}, pair, 60, nil, Fail, ScopePair, "4 and 3 pods, so those of one side get more requests each, and a sentence about a version takes as many on both sides, 3 or more: it says nothing about a version"},
		{"one pod", [2][]float64{{1}, {1.3}}, pair, 20, nil, Fail, ScopePair, "One pair of servers: it says nothing about a version"},
		{"one candidate", [2][]float64{uneven(1, 5), {1.3}}, pair, 40, nil, Fail, ScopePair, "ttft of the candidate's only pod is longer than on all of 5 baseline pods; if its load made no difference, an equal one would be so in 1 of 6 cases. It gets 5 times the requests of each of them"},
		{"a pod restarts", [2][]float64{uneven(1, 4), uneven(1.3, 4)}, pods, 60, func(c *Comparison, minute int) {
			if minute == 10 {
				c.ChangePods(Candidate)
			}
		}, Undecided, ScopePods, "undecided: pods_changed: a pod was replaced or has restarted"},
		{"a pod restarts after the fail", [2][]float64{uneven(1, 4), uneven(1.3, 4)}, pods, 60, func(c *Comparison, minute int) {
			if minute == 40 {
				c.RestartLatencies()
			}
		}, Fail, ScopePods, "fail: over 4 and 4 pods after 15 minutes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := play(c.factors, c.options, c.minutes, c.then)
			if text := j.Text(c.options); j.Verdict != c.verdict || j.Scope != c.scope || !strings.Contains(text, c.text) {
				t.Errorf("got %s about %s: %s\nwant %s about %s: %s", j.Verdict, j.Scope, text, c.verdict, c.scope, c.text)
			}
		})
	}
}

// Looks go on after a restart of replayd, at the instants that they had.
func TestLooksAreKept(t *testing.T) {
	o := Defaults()
	s := newSource(5)
	s.every = 250 * time.Millisecond
	onPods(s, [2][]float64{same(3, 1), same(3, 1.05)})
	one, other := New(o), New(o)
	for n := range 4 * 60 * 130 {
		if n%5000 == 4999 {
			r, err := Restore(o, again(t, other.Snapshot()))
			if err != nil {
				t.Fatal(err)
			}
			other = r
		}
		p := s.next()
		one.Add(p)
		q := *p
		other.Add(&q)
	}
	got, want := other.Judge().Pods, one.Judge().Pods
	// The answers that were in flight have ended for whoever goes on, so that a few more pairs are calm.
	if got.Looks != 4 || got.Verdict != want.Verdict || got.Pods != want.Pods || math.Abs(got.Metrics[TTFT].Estimate-want.Metrics[TTFT].Estimate) > 0.002 {
		t.Errorf("got %s\nwant %s", fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want))
	}
}

// A pod with answers that outlast its blocks has no calm pairs. The others do not speak for it: there is no verdict about latencies, and the text names the pod.
func TestSlowPodsAreNotHidden(t *testing.T) {
	for _, side := range []Side{Baseline, Candidate} {
		for slow := 1; slow <= 5; slow++ {
			for _, require := range Scopes {
				o := Defaults()
				o.Require = require
				s, c := newSource(uint64(slow)), New(o)
				s.every = 200 * time.Millisecond
				onPods(s, [2][]float64{same(6, 1), same(6, 1)})
				dealt := s.form
				s.form = func(p *Pair, rng *rand.Rand) {
					dealt(p, rng)
					for i := range p.Requests { // the first token comes at once, and the answer takes 5 seconds, or a minute
						r := &p.Requests[i]
						r.TTFT, r.E2E = 20*time.Millisecond, 5*time.Second
						if Side(i) == side && int(r.Pod) <= slow {
							r.E2E *= 12
						}
						r.TPOT = r.E2E / 100
						r.First, r.End = r.Sent.Add(r.TTFT), r.Sent.Add(r.E2E)
					}
				}
				named := false
				c.Ended = func(Block) {
					j := c.Judge()
					named = named || j.Hidden[side] > 0 && (j.Reason == FewCalm || j.PairWhy == FewCalm)
				}
				for range 5 * 3600 {
					c.Add(s.next())
				}
				if j := c.Judge(); j.Verdict == Pass || side == Baseline && j.Verdict == Fail || !named {
					t.Errorf("%d of 6 pods of the %s are slow, %s required, named %v: %s", slow, side, require, named, j.Text(o))
				}
			}
		}
	}
}

// A pass does not stand while a pod is not seen: the others would speak for it.
func TestPassOfAPodThatIsNotSeenAnyMore(t *testing.T) {
	o := Defaults()
	o.Tolerance, o.ToleranceTail, o.ToleranceQueued, o.ToleranceBad = 1, 1, 1, 1
	s, c := newSource(3), New(o)
	s.every = 200 * time.Millisecond
	onPods(s, [2][]float64{same(6, 1), same(6, 1)})
	for n := 0; c.Judge().Verdict != Pass; n++ {
		if n == 20*3600 {
			j := c.Judge()
			t.Fatalf("no pass: %s", j.Text(o))
		}
		c.Add(s.next())
	}
	dealt := s.form
	s.form = func(p *Pair, rng *rand.Rand) {
		dealt(p, rng)
		if r := &p.Requests[Candidate]; r.Pod == 1 {
			r.E2E = 2 * time.Minute
			r.TPOT, r.End = r.E2E/100, r.Sent.Add(r.E2E)
		}
	}
	for n := 0; c.Judge().Hidden[Candidate] == 0; n++ {
		if n == 20*3600 {
			t.Fatal("the pod is always seen")
		}
		c.Add(s.next())
	}
	if j := c.Judge(); j.Verdict != Undecided || j.Reason != FewCalm {
		t.Errorf("want few_calm, got %s", j.Text(o))
	}
}
