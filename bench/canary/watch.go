package main

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"

	"replayd/internal/canary"
	"replayd/internal/sim"
)

// A draw gives a watch the next block of one kind of server.
type draw struct {
	name string
	next func(w *canary.Watch, rng *rand.Rand, at time.Time) (changes int)
}

// draws are servers that are no worse and no better than the tolerances.
var draws = []draw{
	{"equal: latencies with noise of 3 %, shares of 0.2 %, 30 % and 5 % on both sides", func(w *canary.Watch, rng *rand.Rand, at time.Time) int {
		return block(w, rng, at, 0, [3]float64{0.05, 0.3, 0.002})
	}},
	{"at the tolerance: each latency exactly 5 % slower, shares as above", func(w *canary.Watch, rng *rand.Rand, at time.Time) int {
		return block(w, rng, at, math.Log(1.05), [3]float64{0.05, 0.3, 0.002})
	}},
}

// blockPairs is the number of pairs of an independent block.
const blockPairs = 50

// block gives a watch a minute's block: latencies with noise of 3 % around a middle, and shares (tail, queued, bad) of both sides.
func block(w *canary.Watch, rng *rand.Rand, at time.Time, middle float64, shares [3]float64) (changes int) {
	end := at.Add(time.Minute)
	for _, m := range canary.Metrics[:canary.E2E+1] {
		if w.Latency(m, middle+0.03*rng.NormFloat64(), at, end) != "" {
			changes++
		}
	}
	for i, m := range canary.Metrics[canary.Tail:] {
		counts := [2]int{}
		for side := range counts {
			counts[side] = binomial(rng, blockPairs, shares[i])
		}
		if w.Share(m, counts, blockPairs, at, end) != "" {
			changes++
		}
	}
	return changes
}

// binomial inverts the distribution.
func binomial(rng *rand.Rand, n int, p float64) int {
	u := rng.Float64()
	chance := math.Pow(1-p, float64(n))
	for k := 0; ; k++ {
		if u -= chance; u < 0 || k == n {
			return k
		}
		chance *= float64(n-k) / float64(k+1) * p / (1 - p)
	}
}

// independent prints how often servers without a change change all the same, in months of independent blocks.
func independent(months int) {
	fmt.Println("| independent blocks of a minute | months | changes, those back included | mean time between them |")
	fmt.Println("|---|---|---|---|")
	for _, d := range draws {
		changes := make([]int, runtime.GOMAXPROCS(0))
		var group sync.WaitGroup
		for worker := range changes {
			group.Go(func() {
				w := canary.NewWatch(canary.Defaults())
				rng := rand.New(rand.NewPCG(uint64(worker), 1))
				at := start
				for range (months + worker) / len(changes) * 30 * 24 * 60 {
					changes[worker] += d.next(w, rng, at)
					at = at.Add(time.Minute)
				}
			})
		}
		group.Wait()
		all := 0
		for _, n := range changes {
			all += n
		}
		fmt.Printf("| %s | %d | %d | %.0f days |\n", d.name, months, all, float64(30*months)/float64(all))
	}
}

// A following is what a watch found of a change after a third of a rollout, and of the way back after two thirds, in minutes from then.
type following struct {
	isWrong            bool // it found a change before
	found, since, back float64
}

// follow takes the first of some metrics that shows the change, and the way back of that one.
func (l *load) follow(baseline, equal, slow []sim.Played, e *effect, metrics []canary.Metric, rng *rand.Rand) following {
	f := following{found: math.Inf(1), since: math.Inf(1), back: math.Inf(1)}
	change, end := l.long/3/l.period*l.period, 2*l.long/3/l.period*l.period
	watch := newWatch()
	first := canary.Metric(0)
	for row, a := range l.arrivals {
		p := l.compared(row, baseline, equal)
		if a.At >= change && a.At < end {
			p = l.compared(row, baseline, slow)
			e.spoil(&p, rng)
		}
		watch.Add(&p)
		if !l.isLook(row, time.Minute) {
			continue
		}
		for _, w := range watch.Judge().Watch {
			switch {
			case w.Direction != "" && math.IsInf(f.found, 1) && slices.Contains(metrics, w.Metric):
				f.found, f.since, first = (w.Found.Sub(start) - change).Minutes(), (w.Since.Sub(start) - change).Minutes(), w.Metric
				f.isWrong = a.At < change
			case w.Direction == "" && w.Metric == first && !math.IsInf(f.found, 1) && math.IsInf(f.back, 1) && a.At >= end:
				f.back = (w.Found.Sub(start) - end).Minutes()
			}
		}
	}
	return f
}

// watched prints what a watch found of changes.
func (l *load) watched(name string, engine sim.Options, rollouts int) error {
	for _, c := range []struct {
		effect  string
		metrics []canary.Metric // which may show it
	}{
		{"all 10 % slower", []canary.Metric{canary.TTFT, canary.TPOT, canary.E2E}},
		{"2 % more errors", []canary.Metric{canary.Bad}},
	} {
		e, _ := effectOf(c.effect)
		all := make([]following, rollouts)
		errs := make([]error, rollouts)
		err := l.each(engine, e, rollouts, func(r int, baseline, slow []sim.Played) {
			o := engine
			o.Seed = 2*uint64(r) + 1<<32
			equal, err := sim.Play(o, l.arrivals)
			if err != nil {
				errs[r] = err
				return
			}
			all[r] = l.follow(baseline, equal, slow, &e, c.metrics, rand.New(rand.NewPCG(uint64(r), 1)))
		})
		if err := errors.Join(append(errs, err)...); err != nil {
			return err
		}
		wrong := 0
		var found, since, back []float64
		for _, f := range all {
			if f.isWrong {
				wrong++
			}
			found, since, back = append(found, f.found), append(since, f.since), append(back, f.back)
		}
		fmt.Printf("| %s, %s | %d | %d | %s | %s | %s |\n", name, e.name, rollouts, wrong, spread(found), spread(since), spread(back))
	}
	return nil
}
