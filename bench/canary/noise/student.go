package main

import (
	"fmt"
	"math"

	"replayd/internal/canary"
)

// A student is another evidence about latencies than the product's bits: the t e-process of Pérez-Ortiz, Lardy, de Heide
// and Grünwald (E-statistics, group invariance and anytime-valid testing, Annals of Statistics 52, 2024; also Wang and
// Ramdas, arXiv 2310.03722). It is the likelihood ratio of Student's statistic for an effect of some deviations against
// none. If the values of blocks are normal and independent, with a mean at or below 0, its mean never exceeds 1.
type student struct {
	n            float64
	sum, squares float64
}

func (s *student) add(v float64) {
	s.n++
	s.sum += v
	s.squares += v * v
}

// studentEffects are the effects, in deviations of a block, over which the evidence is averaged.
var studentEffects = []float64{0.5, 1, 2}

// log10 is the decimal logarithm of the evidence that the mean is above 0. The ratio for an effect d is
// exp(−n d² ÷ 2) times the mean of exp(d √n r U): U has n degrees of freedom of chi, and r is Σx ÷ √(n Σx²).
func (s *student) log10() float64 {
	if s.n < 2 || s.squares == 0 {
		return 0
	}
	const steps = 400
	r := s.sum / math.Sqrt(s.n*s.squares)
	middle, width := math.Sqrt(s.n), 8.0
	mean := 0.0
	for _, d := range studentEffects {
		// the integrand has its mode near that of chi, moved by the effect
		shift := d * math.Sqrt(s.n) * r
		mode := (shift + math.Sqrt(shift*shift+4*(s.n-1))) / 2
		low, high := max(0, min(middle, mode)-width), max(middle, mode)+width
		top, bottom, peak := 0.0, 0.0, (s.n-1)*math.Log(mode)-mode*mode/2+shift*mode
		chi := (s.n-1)*math.Log(math.Sqrt(s.n-1)) - (s.n-1)/2
		for i := range steps {
			u := low + (high-low)*(float64(i)+0.5)/steps
			of := (s.n-1)*math.Log(u) - u*u/2
			top += math.Exp(of + shift*u - peak)
			bottom += math.Exp(of - chi)
		}
		mean += math.Exp(min(600, peak-chi-s.n*d*d/2)) * top / bottom
	}
	return math.Log10(mean / float64(len(studentEffects)))
}

// An evidence has two kinds of evidence about the latencies of one comparison.
type evidence struct {
	*canary.Comparison
	options     canary.Options
	slower      [canary.E2E + 1]student // above tolerance and wander
	notSlower   [canary.E2E + 1]student // below tolerance less wander
	now         float64                 // minutes
	bits, means said
}

func newEvidence(o canary.Options) *evidence {
	none := said{verdict: canary.Undecided, at: math.NaN(), failed: math.NaN()}
	e := &evidence{Comparison: canary.New(o), options: o, bits: none, means: none}
	e.Ended = e.end
	return e
}

// end judges the latencies after a block. The first verdict stands.
func (e *evidence) end(b canary.Block) {
	failed, passed, values := [2]bool{}, [2]bool{true, true}, false
	for m := range e.slower {
		of := b.Metrics[m]
		if math.IsNaN(of.Ratio) {
			return
		}
		values = true
		v, limit := math.Log(of.Ratio), math.Log1p(e.options.Tolerance)
		e.slower[m].add(v - limit - e.options.Wander)
		e.notSlower[m].add(limit - e.options.Wander - v)
		failed[0] = failed[0] || of.After.WorseLog10 >= e.options.FailLog10()
		passed[0] = passed[0] && of.After.NotWorseLog10 >= e.options.PassLog10()
		failed[1] = failed[1] || e.slower[m].log10() >= e.options.FailLog10()
		passed[1] = passed[1] && e.notSlower[m].log10() >= e.options.PassLog10()
	}
	canPass := math.Log1p(e.options.Tolerance) > e.options.Wander
	for i, s := range []*said{&e.bits, &e.means} {
		switch {
		case s.verdict != canary.Undecided || !values:
		case failed[i]:
			s.verdict, s.at = canary.Fail, e.now
		case passed[i] && canPass:
			s.verdict, s.at = canary.Pass, e.now
		}
	}
}

// students prints both kinds of evidence about latencies beside each other.
func (t *table) students() error {
	var some []noise
	for _, name := range []string{
		"independent", "network tails (Pareto)", "stalls of 1 s a minute", "60 sessions of 15 min, each 30 s",
		"drift 3 %, 10 min", "drift 5 %, 60 min", "neighbor 20 %, 10 min each 2 h", "hardware 2 %",
	} {
		some = append(some, noiseOf(name))
	}
	fmt.Println("| candidate, noise, load, pods | w | bits: fail, pass | minutes | t: fail, pass | minutes |")
	fmt.Println("|---|---|---|---|---|---|")
	for _, e := range []effect{{name: "equal"}, {name: "5 % slower", all: 1.05}, {name: "prefill 10 % slower", prefill: 1.1}, {name: "all 20 % slower", all: 1.2}} {
		for _, l := range t.lines(some) {
			of := t.trial(l.load, l.noise, e)
			for _, w := range t.wanders {
				all := make([][]said, t.rollouts)
				parallel(t.rollouts, func(r int) {
					one := newEvidence(t.options(w))
					of.each(uint64(r), func(p canary.Pair) bool {
						one.now = p.At.Sub(start).Minutes()
						one.Add(&p)
						return one.bits.verdict == canary.Undecided || one.means.verdict == canary.Undecided
					})
					all[r] = []said{one.bits, one.means}
				})
				bits, means := newCount(all, 0), newCount(all, 1)
				fmt.Printf("| %s, %s | %.0f %% | %d, %d of %d | %s | %d, %d of %d | %s |\n", e.name, l.name, 100*w, bits.fails, bits.passes, bits.n,
					middle(bits.minutes), means.fails, means.passes, means.n, middle(means.minutes))
			}
		}
	}
	return nil
}
