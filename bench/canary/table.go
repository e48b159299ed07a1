package main

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"replayd/internal/canary"
	"replayd/internal/sim"
)

// parallel does the rollouts, as many at once as there are cores.
func parallel(rollouts int, do func(rollout int) error) error {
	errs := make([]error, rollouts)
	var group sync.WaitGroup
	turns := make(chan struct{}, runtime.GOMAXPROCS(0))
	for r := range rollouts {
		turns <- struct{}{}
		group.Go(func() {
			defer func() { <-turns }()
			errs[r] = do(r)
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// each plays the rollouts of an effect.
func (l *load) each(
	engine sim.Options, e effect, rollouts int, judge func(rollout int, baseline, candidate []Played),
) error {
	return parallel(rollouts, func(r int) error {
		b, c, err := l.play(engine, e, uint64(r))
		if err == nil {
			judge(r, b, c)
		}
		return err
	})
}

// verdicts prints a line of a table: the verdicts of the program, the metrics that failed, and the time and the blocks until then. The quantiles
// are of e2e, candidate ÷ baseline, in the first rollout.
func (l *load) verdicts(name string, engine sim.Options, e effect, rollouts int) error {
	all := make([]said, rollouts)
	quantiles := ""
	err := l.each(engine, e, rollouts, func(r int, b, c []Played) {
		all[r] = l.verdict(b, c, e, uint64(r))
		if r == 0 {
			quantiles = fmt.Sprintf("%.2f, %.2f", l.quantile(c, 0.5)/l.quantile(b, 0.5), l.quantile(c, 0.99)/l.quantile(b, 0.99))
		}
	})
	if err != nil {
		return err
	}
	verdicts, metrics := map[canary.Verdict]int{}, map[string]int{}
	var times, blocks []float64
	for _, s := range all {
		verdicts[s.verdict]++
		times = append(times, minutes(s.at))
		blocks = append(blocks, float64(s.blocks))
		if s.verdict == canary.Undecided {
			blocks[len(blocks)-1] = math.Inf(1)
		}
		if s.verdict == canary.Fail {
			metrics[s.metric.String()]++
		}
	}
	fmt.Printf("| %s, %s | %s | %d %s | %d | %d | %s | %s |\n", name, e.name, quantiles, verdicts[canary.Fail], strings.Trim(fmt.Sprint(metrics), "map[]"),
		verdicts[canary.Pass], verdicts[canary.Undecided], spread(times), spread(blocks))
	return nil
}

// quantile is one of the seconds to the last token.
func (l *load) quantile(played []Played, q float64) float64 {
	all := make([]float64, len(played))
	for i, p := range played {
		all[i] = (p.Last - l.arrivals[i].At).Seconds()
	}
	slices.Sort(all)
	return all[int(q*float64(len(all)-1))]
}

// spread is the median and the 90th percentile.
func spread(v []float64) string {
	slices.Sort(v)
	text := func(x float64) string {
		if math.IsInf(x, 1) {
			return "–"
		}
		return fmt.Sprintf("%.0f", x)
	}
	return text(v[len(v)/2]) + ", " + text(v[len(v)*9/10])
}

func minutes(d time.Duration) float64 {
	if d == 0 {
		return math.Inf(1)
	}
	return d.Minutes()
}
