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

// A draw is how the blocks of two servers differ that are no worse and no better than the tolerances.
type draw struct {
	name   string
	middle float64 // of each latency's logarithm of the ratio
	drift  float64 // deviation of the middle, which is an AR(1)
	time   float64 // minutes until its correlation is 1/e
	within bool    // the drift is cut off at the wander
}

var draws = []draw{
	{name: "equal"},
	{name: "each latency exactly 5 % slower", middle: math.Log(1.05)},
	{name: "5 % slower, drift 3 % of 10 min, within w", middle: math.Log(1.05), drift: 0.03, time: 10, within: true},
	{name: "5 % slower, drift 5 % of 60 min, within w", middle: math.Log(1.05), drift: 0.05, time: 60, within: true},
	{name: "equal, drift 2 % of 10 min", drift: 0.02, time: 10},
	{name: "equal, drift 3 % of 10 min", drift: 0.03, time: 10},
	{name: "equal, drift 5 % of 10 min", drift: 0.05, time: 10},
	{name: "equal, drift 3 % of 60 min", drift: 0.03, time: 60},
	{name: "equal, drift 5 % of 60 min", drift: 0.05, time: 60},
}

// wanders are those of the watches.
var wanders = []float64{0, 0.02, 0.05, 0.1}

const (
	blockPairs = 50   // pairs of a block
	blockNoise = 0.03 // of a block's latency
	blockTail  = 0.05 // shares of the requests, on both sides
	blockQueue = 0.3
	blockBad   = 0.002
)

// month gives a watch 30 days of blocks of a minute. It returns the changes.
func (d *draw) month(w *canary.Watch, wander float64, rng *rand.Rand, at time.Time) (changes int) {
	keeps := 0.0
	if d.time > 0 {
		keeps = math.Exp(-1 / d.time)
	}
	drift := d.drift * rng.NormFloat64()
	for range 30 * 24 * 60 {
		end := at.Add(time.Minute)
		drift = keeps*drift + math.Sqrt(1-keeps*keeps)*d.drift*rng.NormFloat64()
		middle := d.middle + drift
		if d.within {
			middle = d.middle + max(-wander, min(wander, drift))
		}
		for _, m := range canary.Metrics[:canary.E2E+1] {
			if w.Latency(m, middle+blockNoise*rng.NormFloat64(), at, end) != "" {
				changes++
			}
		}
		for i, share := range []float64{blockTail, blockQueue, blockBad} {
			counts := [2]int{binomial(rng, blockPairs, share), binomial(rng, blockPairs, share)}
			if w.Share(canary.Metrics[canary.Tail+canary.Metric(i)], counts, blockPairs, at, end) != "" {
				changes++
			}
		}
		at = end
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

// months prints how often servers change that do not.
func months(n int) {
	fmt.Println("| blocks of a minute | w | months | changes, those back included | mean time between them |")
	fmt.Println("|---|---|---|---|---|")
	for _, d := range draws {
		for _, wander := range wanders {
			o := canary.Defaults()
			o.Wander = wander
			changes := make([]int, runtime.GOMAXPROCS(0))
			var group sync.WaitGroup
			for worker := range changes {
				group.Go(func() {
					rng := rand.New(rand.NewPCG(uint64(worker), 1))
					for range (n + worker) / len(changes) {
						changes[worker] += d.month(canary.NewWatch(o), wander, rng, start)
					}
				})
			}
			group.Wait()
			all := 0
			for _, k := range changes {
				all += k
			}
			days := "–"
			if all > 0 {
				days = fmt.Sprintf("%.3g days", float64(30*n)/float64(all))
			}
			fmt.Printf("| %s | %.0f %% | %d | %d | %s |\n", d.name, 100*wander, n, all, days)
		}
	}
}

// A following is what a watch found of a change after a third of a rollout, and of the way back after two thirds, in minutes from then.
type following struct {
	isWrong            bool // it found a change before
	found, since, back float64
}

// follow takes the first of some metrics that shows the change, and the way back of that one.
func (l *load) follow(baseline, equal, slow []Played, e *effect, metrics []canary.Metric, rng *rand.Rand) following {
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
		err := l.each(engine, e, rollouts, func(r int, baseline, slow []Played) {
			o := engine
			o.Seed = 2*uint64(r) + 1<<32
			equal, err := Play(o, l.arrivals)
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

func newWatch() *canary.Comparison {
	o := canary.Defaults()
	o.Mode = canary.ModeWatch
	return canary.New(o)
}
