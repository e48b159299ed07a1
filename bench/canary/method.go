package main

import (
	"math"
	"time"

	"replayd/internal/canary"
	"replayd/internal/stats"
)

// A method makes blocks of pairs, and of each block a bit.
type method struct {
	name   string
	pairs  int           // least, of those whose latencies count
	time   time.Duration // least
	border func(p *pair, quiet [2]int) bool
	counts func(p *pair, quiet [2]int) bool // whether the latencies of a pair count
	keep   func(calm, all int) bool         // whether a block gives a bit
}

func always(*pair, [2]int) bool { return true }

func empty(p *pair, _ [2]int) bool { return p.queued == [2]int{} }

func quiet(p *pair, q [2]int) bool { return p.queued[0] <= q[0] && p.queued[1] <= q[1] }

func every(int, int) bool { return true }

var methods = []method{
	{"no blocks", 1, 0, always, always, every},
	{"a minute", 20, time.Minute, always, always, every},
	{"a minute, calm by 10 %", 20, time.Minute, always, always, func(calm, all int) bool { return 10*(all-calm) <= all }},
	{"to an empty queue", 20, time.Minute, empty, always, every},
	{"to an empty queue, calm pairs", 20, time.Minute, empty, empty, every},
	{"to a short queue", 20, time.Minute, quiet, always, every},
	{"to a short queue, calm pairs", 20, time.Minute, quiet, quiet, every},
}

// A finding is the result of a method in a rollout, for one metric.
type finding struct {
	blocks      int
	convicted   time.Duration // 0: not
	at          int           // blocks until then
	correlation float64       // of neighboring block values
	above       float64       // share of the blocks above the tolerance
}

// threshold is that of CANARY: six tests at 1 %.
var threshold = math.Log10(6 / 0.01)

// lengths counts the queue lengths that a side's requests have met.
type lengths struct {
	counts [4096]int
	all    int
}

func (l *lengths) add(n int) { l.counts[min(n, len(l.counts)-1)]++; l.all++ }

// quarter is the length that a quarter of the requests do not exceed; 0 before 200 requests.
func (l *lengths) quarter() int {
	if l.all < 200 {
		return 0
	}
	seen := 0
	for n, c := range l.counts {
		if seen += c; 4*seen >= l.all {
			return n
		}
	}
	return 0
}

func (m *method) judge(ps []pair, tolerances []float64) (found [][3]finding) {
	found = make([][3]finding, len(tolerances))
	evidence := make([][3]canary.Evidence, len(tolerances))
	var values [3][]float64
	var block [3][]float64
	var met [2]lengths
	q := [2]int{}
	calm, all, begin, from := 0, 0, time.Duration(0), 0
	for i := range ps {
		p := &ps[i]
		// A border lies between two instants.
		if calm >= m.pairs && p.at-begin >= m.time && (i == 0 || ps[i-1].at < p.at || m.time == 0) && m.border(p, q) {
			if m.keep(emptyPairs(ps[from:i]), all) {
				for k := range block {
					if len(block[k]) == 0 {
						continue
					}
					v := stats.PercentileOf(50, block[k])
					values[k] = append(values[k], v)
					for t, tolerance := range tolerances {
						f, e := &found[t][k], &evidence[t][k]
						e.Add(v > math.Log1p(tolerance))
						if f.convicted == 0 && 2*e.Ones > e.Bits && e.Log10() >= threshold {
							f.convicted, f.at = p.at, int(e.Bits)
						}
					}
				}
			}
			for side := range met {
				for j := from; j < i; j++ {
					met[side].add(ps[j].queued[side])
				}
				q[side] = met[side].quarter()
			}
			for k := range block {
				block[k] = block[k][:0]
			}
			calm, all, begin, from = 0, 0, p.at, i
		}
		all++
		if !m.counts(p, q) {
			continue
		}
		calm++
		for k, v := range p.logs {
			if !math.IsNaN(v) && !math.IsInf(v, 0) {
				block[k] = append(block[k], v)
			}
		}
	}
	for t := range found {
		for k := range found[t] {
			f := &found[t][k]
			f.blocks, f.correlation = len(values[k]), correlation(values[k])
			if f.blocks > 0 {
				f.above = float64(evidence[t][k].Ones) / float64(f.blocks)
			}
		}
	}
	return found
}

func emptyPairs(ps []pair) (n int) {
	for i := range ps {
		if empty(&ps[i], [2]int{}) {
			n++
		}
	}
	return n
}

// correlation is that of neighboring values.
func correlation(v []float64) float64 {
	if len(v) < 8 {
		return math.NaN()
	}
	mean := 0.0
	for _, x := range v {
		mean += x / float64(len(v))
	}
	var with, own float64
	for i, x := range v {
		own += (x - mean) * (x - mean)
		if i > 0 {
			with += (x - mean) * (v[i-1] - mean)
		}
	}
	return with / own
}
