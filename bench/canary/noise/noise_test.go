package main

import (
	"cmp"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"replayd/internal/canary"
)

// played are the first pairs of a rollout.
func played(t *trial, number uint64, most int) (all []canary.Pair) {
	t.each(number, func(p canary.Pair) bool {
		all = append(all, p)
		return len(all) < most
	})
	return all
}

// A rollout is its number's: the same pairs each time, others for another number. With each noise and effect the pairs
// are in order and have latencies, and the sides differ.
func TestRolloutIsItsNumbers(t *testing.T) {
	trace := standIn()
	trials := []*trial{}
	for _, n := range noises {
		trials = append(trials, &trial{trace: trace, load: loads[2], noise: n, long: hour})
	}
	for _, e := range append(effects[:len(effects):len(effects)], fasters...) {
		trials = append(trials, &trial{trace: trace, load: loads[0], noise: noises[0], effect: e, long: hour})
	}
	for _, of := range trials {
		name := of.noise.name + ", " + of.effect.name
		first, again, other := played(of, 1, 200), played(of, 1, 200), played(of, 2, 200)
		if len(first) != 200 || !reflect.DeepEqual(first, again) || reflect.DeepEqual(first, other) {
			t.Errorf("%s: rollout 1 has %d pairs; the same again: %v; the same as rollout 2: %v", name, len(first),
				reflect.DeepEqual(first, again), reflect.DeepEqual(first, other))
		}
		for i, p := range first {
			b, c := p.Requests[canary.Baseline], p.Requests[canary.Candidate]
			isWrong := b.E2E < b.TTFT || c.E2E < c.TTFT || !b.Bad && (b.TTFT <= 0 || b == c)
			if isWrong || i > 0 && p.At.Before(first[i-1].At) {
				t.Fatalf("%s: pair %d: %+v", name, i, p)
			}
		}
	}
}

// sizes are the mean and the deviation of values.
func sizes(values []float64) (mean, sd float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		sd += (v - mean) * (v - mean) / float64(len(values))
	}
	return mean, math.Sqrt(sd)
}

// Drift, spells and hardware have the sizes that their names say.
func TestNoisesHaveTheirSizes(t *testing.T) {
	near := func(name string, got, want, most float64) {
		t.Helper()
		if math.Abs(got-want) > most {
			t.Errorf("%s: got %.4f, want %.4f", name, got, want)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))

	n := noiseOf("drift 5 %, 10 min")
	c := newClock(&n, canary.Baseline, 1, rng)
	var levels []float64
	for at := 0.0; at < 2000*hour; at += minute {
		levels = append(levels, math.Log(c.factor(at)))
	}
	mean, sd := sizes(levels)
	product := 0.0
	for i := 10; i < len(levels); i++ {
		product += (levels[i] - mean) * (levels[i-10] - mean) / float64(len(levels)-10)
	}
	near("drift: deviation", sd, 0.05, 0.002)
	near("drift: correlation after its time", product/sd/sd, 1/math.E, 0.03)

	n = noiseOf("hardware 2 %")
	levels = nil
	for range 10_000 {
		levels = append(levels, math.Log(newClock(&n, canary.Candidate, 1, rng).factor(0)))
	}
	_, sd = sizes(levels)
	near("hardware: deviation", sd, 0.02, 0.001)

	for _, s := range []struct {
		name         string
		slower, most float64 // shares of the time
	}{
		{"neighbor 20 %, 10 min each 2 h", 10.0 / 120, 0.005},
		{"neighbor 30 %, 15 min each 6 h", 15.0 / 360, 0.004},
		{"throttling by 12 %, 10 min of each hour", 10.0 / 60, 0.001},
	} {
		n = noiseOf(s.name)
		c = newClock(&n, canary.Baseline, 1, rng)
		slow, spells, before := 0.0, 0.0, 1.0
		for at := 0.0; at < 10_000*hour; at += minute {
			f := c.factor(at)
			if f > 1 {
				near(s.name+": factor", f, 1/(1-n.slowBy), 1e-9)
				slow++
				if before == 1 {
					spells++
				}
			}
			before = f
		}
		near(s.name+": share of the time", slow/(10_000*60), s.slower, s.most)
		near(s.name+": minutes of a spell", slow/spells, n.slow.long/minute, 0.1*n.slow.long/minute)
	}

	n = noiseOf("warm-up of the candidate, 20 %, 10 min")
	near("warm-up of the baseline", newClock(&n, canary.Baseline, 1, rng).factor(0), 1, 0)
	near("warm-up after 10 minutes", newClock(&n, canary.Candidate, 1, rng).factor(10*minute), 1+0.2/math.E, 1e-9)
}

// Sessions send as many requests as their name says, each its own prompt again and again, to one pod.
func TestUsersAreSticky(t *testing.T) {
	l := loads[0]
	l.pods = 4
	of := &trial{trace: standIn(), load: l, noise: noiseOf("60 sessions of 15 min, each 30 s")}
	s := newSide(of, canary.Baseline, 1)
	s.serveUsers(4 * hour)
	requests := 0
	for _, p := range s.pods {
		requests += len(p.inbox)
		if !slices.IsSortedFunc(p.inbox, func(a, b job) int { return cmp.Compare(a.at, b.at) }) {
			t.Error("requests of users are not in order")
		}
	}
	if want := 2 * 4 * hour; math.Abs(float64(requests)-want) > 0.05*want {
		t.Errorf("%d requests in 4 hours, want about %.0f", requests, want)
	}
	for _, u := range s.sessions {
		if u.next < 4*hour || u.next > u.end {
			t.Errorf("after 4 hours a session has its next request at %.0f and its end at %.0f s", u.next, u.end)
		}
	}
}

// An engine takes as long as its steps: a prompt of 600 tokens takes three, the last one with 168 tokens of the next
// prompt, and each output token takes one.
func TestEngine(t *testing.T) {
	quiet := &trial{trace: standIn(), load: loads[0], long: hour}
	p := newSide(quiet, canary.Baseline, 1).pods[0]
	p.out = make([]answered, 2)
	p.inbox = []job{{at: 1, tokens: 600, output: 101, row: 0}, {at: 1.001, tokens: 200, output: 1, row: 1}}
	p.run(100)
	near := func(name string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 0.05*want {
			t.Errorf("%s after %.4f s, want %.4f", name, got, want)
		}
	}
	near("first token", p.out[0].first-1, 3*stepSeconds+3*chunkTokens/8000.0)
	near("second prompt", p.out[1].first-1, 4*stepSeconds+800.0/8000+0.0001)
	near("last token", p.out[0].last-1, 4*stepSeconds+800.0/8000+99*(stepSeconds+0.0001)+0.0001)
}

// Equal servers at L1 show the finding's figures, and the interval is that of the finding.
func TestFigures(t *testing.T) {
	_, f := (&trial{trace: standIn(), load: loads[0], noise: noises[0], long: hour}).figures(2)
	if math.Abs(f.ttft-0.25) > 0.05 || math.Abs(f.queued-0.22) > 0.05 || math.Abs(f.calm-0.73) > 0.08 {
		t.Errorf("figures of L1: %+v", f)
	}
	low, high := rate{34, 500}.interval(0.95)
	if math.Abs(low-0.048) > 0.0005 || math.Abs(high-0.094) > 0.0005 {
		t.Errorf("34 of 500: %.4f to %.4f, want 0.048 to 0.094", low, high)
	}
	if low, high = (rate{0, 500}).interval(0.95); low != 0 || math.Abs(high-(1-math.Pow(0.025, 1.0/500))) > 1e-6 {
		t.Errorf("0 of 500: %.5f to %.5f", low, high)
	}
}

// Ten rollouts of equal servers all end with a pass, and of a candidate 20 % slower with a fail, within two hours.
func TestVerdicts(t *testing.T) {
	o := canary.Defaults()
	for _, c := range []struct {
		effect effect
		want   canary.Verdict
	}{{effect{}, canary.Pass}, {effects[3], canary.Fail}} {
		of := &trial{trace: standIn(), load: loads[0], noise: noises[0], effect: c.effect, long: 2 * hour}
		for i, s := range of.rollouts(10, []judge{{options: o, slower: 1}}) {
			if s[0].verdict != c.want || math.IsNaN(s[0].at) {
				t.Errorf("rollout %d, %q: %+v", i, c.effect.name, s[0])
			}
		}
	}
}

// The mean of the evidence of values that are normal around 0 is 1 at most, and over all looks it rarely exceeds a bound. That of values above 0 grows.
func TestStudent(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	const lives, bound = 500, 20.0
	exceeded, sum := 0, 0.0
	for range lives {
		s, most := student{}, 0.0
		for range 30 {
			s.add(3 * rng.NormFloat64())
			most = max(most, s.log10())
		}
		sum += math.Pow(10, s.log10())
		if most >= math.Log10(bound) {
			exceeded++
		}
	}
	if share := float64(exceeded) / lives; share > 1/bound+0.03 {
		t.Errorf("%.1f %% exceed 20, want 5 %% at most", 100*share)
	}
	if mean := sum / lives; mean > 1.5 {
		t.Errorf("the mean is %.2f, want about 1", mean)
	}
	s := student{}
	for range 12 {
		s.add(1.5 + rng.NormFloat64())
	}
	if s.log10() < 1.5 {
		t.Errorf("of values above 0 it is 10^%.1f", s.log10())
	}
}
