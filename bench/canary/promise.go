package main

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"replayd/internal/canary"
	"replayd/internal/sim"
)

// A scaled is a candidate whose measured latencies are those of an equal server, times factors. So the medians of the block values are exactly at
// the factors, whatever the engine does.
type scaled struct {
	name      string
	latencies [canary.E2E + 1]float64 // TTFT, TPOT, e2e
	isWorse   bool                    // a fail is right, a pass is wrong
	isAtBound bool                    // both are wrong
}

var scaleds = func() []scaled {
	all := []scaled{
		{"equal", [3]float64{1, 1, 1}, false, false},
		{"all exactly 5 % slower", [3]float64{1.05, 1.05, 1.05}, false, true},
	}
	for _, f := range []float64{1.05, 1.051, 1.1} {
		for m := range canary.E2E + 1 {
			if f > 1.05 && m != canary.TTFT {
				continue
			}
			s := scaled{name: fmt.Sprintf("%v %.4g %% slower", m, 100*(f-1)), latencies: [3]float64{1, 1, 1}, isWorse: f > 1.05, isAtBound: f == 1.05}
			s.latencies[m] = f
			all = append(all, s)
		}
	}
	return all
}()

// A count is the verdicts of the rollouts of a candidate.
type count struct {
	rollouts, failed, passed int
	metrics                  map[string]int // that failed
}

// A pool is played loops of one engine. All loops have the same rows, with texts of their own, so any of them may follow any other.
type pool struct {
	load  *load
	loops [][]Played // of each its rows, from its start
}

// pool fills a pool with the loops of some rollouts. The first loop of each is left out: it begins with an idle engine.
func (l *load) pool(o sim.Options, rollouts int) (*pool, error) {
	p := &pool{load: l}
	var lock sync.Mutex
	err := parallel(rollouts, func(r int) error {
		options := o
		options.Seed = uint64(r)
		played, err := Play(options, l.arrivals)
		if err != nil {
			return err
		}
		lock.Lock()
		defer lock.Unlock()
		for at := l.loop; at < len(played); at += l.loop {
			loop := played[at : at+l.loop]
			before := l.arrivals[at].At - l.arrivals[0].At
			for i := range loop {
				loop[i].First -= before
				loop[i].Last -= before
			}
			p.loops = append(p.loops, loop)
		}
		return nil
	})
	return p, err
}

// rollout puts both sides of a rollout together from loops of the pool. None comes twice.
func (p *pool) rollout(rng *rand.Rand) (sides [2][]Played) {
	l := p.load
	order := rng.Perm(len(p.loops))
	for at := 0; at < len(l.arrivals); at += l.loop {
		after := l.arrivals[at].At - l.arrivals[0].At
		for side := range sides {
			for _, r := range p.loops[order[0]] {
				r.First += after
				r.Last += after
				sides[side] = append(sides[side], r)
			}
			order = order[1:]
		}
	}
	return sides
}

// promise counts how often each candidate ever failed, and ever passed, within a rollout of equal servers. It is asked each half hour, and a pass does
// not end it. Beside it, a watch of the equal servers goes on from rollout to rollout.
func (l *load) promise(name string, o sim.Options, rollouts int) error {
	loops, err := l.pool(o, poolRollouts)
	if err != nil {
		return err
	}
	counts := make([]count, len(scaleds))
	watches, counters := make(chan *chain, runtime.GOMAXPROCS(0)), canary.NewCounters()
	for range cap(watches) {
		watch := newWatch()
		watch.Count(counters)
		watches <- &chain{Comparison: watch}
	}
	all := &signs{}
	var lock sync.Mutex
	err = parallel(rollouts, func(r int) error {
		sides := loops.rollout(rand.New(rand.NewPCG(uint64(r), 2)))
		watch := <-watches
		neighbors := &signs{}
		said := l.judged(sides[canary.Baseline], sides[canary.Candidate], watch, neighbors)
		watches <- watch
		lock.Lock()
		defer lock.Unlock()
		all.addAll(neighbors)
		for i, s := range said {
			counts[i].add(s)
		}
		if counts[0].rollouts%100 == 0 && counts[0].rollouts < rollouts {
			write(os.Stderr, name, counts)
		}
		return nil
	})
	if err != nil {
		return err
	}
	write(os.Stdout, name, counts)
	changes := map[string]int64{}
	for m, t := range counters.Totals().Metrics {
		for d, n := range t.Changes {
			if n > 0 {
				changes[fmt.Sprint(canary.Metric(m), " ", d)] = n
			}
		}
	}
	for m := range all.last {
		fmt.Printf("\n%s: %v of equal servers: %d blocks a day, correlation of neighboring signs %.3f", name, canary.Metric(m),
			int(float64(all.blocks[m])/float64(rollouts)*24/l.long.Hours()), float64(all.product[m])/float64(all.pairs[m]))
	}
	fmt.Printf("\n%s: of %d loops. Watched for %.0f days, equal servers changed: %v\n\n",
		name, len(loops.loops), float64(rollouts)*l.long.Hours()/24, changes)
	return nil
}

// poolRollouts is how many rollouts of a server are played for a pool.
const poolRollouts = 60

func write(to io.Writer, name string, counts []count) {
	for i, s := range scaleds {
		fmt.Fprintln(to, s.row(name, &counts[i]))
	}
}

// A chain is a comparison of rollouts one after another.
type chain struct {
	*canary.Comparison
	after time.Duration // where the present rollout begins
}

func (c *chain) add(p canary.Pair) {
	p.At = p.At.Add(c.after)
	for side := range p.Requests {
		r := &p.Requests[side]
		r.Sent, r.First, r.End = r.Sent.Add(c.after), r.First.Add(c.after), r.End.Add(c.after)
	}
	c.Add(&p)
}

func newWatch() *canary.Comparison {
	o := canary.Defaults()
	o.Mode = canary.ModeWatch
	return canary.New(o)
}

// An ever is what a comparison said at any time of a rollout.
type ever struct {
	failed, passed bool
	metric         canary.Metric
}

// signs are the block values of equal servers, above or below 0: the correlation of neighbors is to be 0.
type signs struct {
	blocks, pairs, product [canary.E2E + 1]int
	last                   [canary.E2E + 1]int
}

func (s *signs) add(b canary.Block) {
	for m := range s.last {
		sign := 0
		switch ratio := b.Metrics[m].Ratio; {
		case ratio > 1:
			sign = 1
		case ratio < 1:
			sign = -1
		default:
			continue
		}
		s.blocks[m]++
		if s.last[m] != 0 {
			s.pairs[m]++
			s.product[m] += sign * s.last[m]
		}
		s.last[m] = sign
	}
}

// addAll adds the sums of another rollout.
func (s *signs) addAll(other *signs) {
	for m := range s.last {
		s.blocks[m] += other.blocks[m]
		s.pairs[m] += other.pairs[m]
		s.product[m] += other.product[m]
	}
}

func (l *load) judged(baseline, candidate []Played, watch *chain, neighbors *signs) []ever {
	said := make([]ever, len(scaleds))
	comparisons := make([]*canary.Comparison, len(scaleds))
	for i := range comparisons {
		comparisons[i] = canary.New(canary.Defaults())
	}
	comparisons[0].Ended = neighbors.add
	for row := range l.arrivals {
		p := l.compared(row, baseline, candidate)
		isLook := l.isLook(row, 30*time.Minute) || row == len(l.arrivals)-1
		for i := range scaleds {
			s := &said[i]
			if s.failed {
				continue
			}
			q := p
			r := &q.Requests[canary.Candidate]
			for m, d := range []*time.Duration{&r.TTFT, &r.TPOT, &r.E2E} {
				*d = time.Duration(math.Round(float64(*d) * scaleds[i].latencies[m]))
			}
			comparisons[i].Add(&q)
			if !isLook {
				continue
			}
			j := comparisons[i].Judge()
			s.passed = s.passed || j.Verdict == canary.Pass
			s.failed, s.metric = j.Verdict == canary.Fail, j.Metric
		}
		watch.add(p)
	}
	watch.after += l.long
	return said
}

func (c *count) add(e ever) {
	c.rollouts++
	if e.passed {
		c.passed++
	}
	if e.failed {
		c.failed++
		if c.metrics == nil {
			c.metrics = map[string]int{}
		}
		c.metrics[e.metric.String()]++
	}
}

// row is the line of a table. A rate that a promise bounds has its lower 99 % bound, which is to be at most alpha.
func (s *scaled) row(name string, c *count) string {
	holds := "holds"
	rate := func(n int, isPromised bool) string {
		if !isPromised {
			return fmt.Sprint(n)
		}
		low := atLeast(n, c.rollouts)
		if low > canary.Defaults().Alpha {
			holds = "**does not hold**"
		}
		return fmt.Sprintf("%d (≥ %.2f %%)", n, 100*low)
	}
	failed, passed := rate(c.failed, !s.isWorse), rate(c.passed, s.isWorse || s.isAtBound)
	return fmt.Sprintf("| %s, %s | %d | %s %s | %s | %s |", name, s.name, c.rollouts, failed, strings.Trim(fmt.Sprint(c.metrics), "map[]"), passed, holds)
}

// atLeast is the lower 99 % bound of Clopper and Pearson of a rate: with it, as many of n as k come with a chance of 1 %.
func atLeast(k, n int) float64 {
	if k == 0 {
		return 0
	}
	low, high := 0.0, float64(k)/float64(n)
	for range 60 {
		middle := (low + high) / 2
		if tailOf(k, n, middle) < 0.01 {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// tailOf is the chance of k or more of n.
func tailOf(k, n int, chance float64) float64 {
	logs := func(v int) float64 { l, _ := math.Lgamma(float64(v) + 1); return l }
	sum := 0.0
	for i := k; i <= n; i++ {
		sum += math.Exp(logs(n) - logs(i) - logs(n-i) + float64(i)*math.Log(chance) + float64(n-i)*math.Log1p(-chance))
	}
	return sum
}
