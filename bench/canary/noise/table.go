package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"replayd/internal/canary"
)

// A table prints lines of rollouts.
type table struct {
	trace    *trace
	rollouts int
	hours    float64
	loads    []load
	wanders  []float64
	only     string
	require  canary.Scope
}

func (t *table) trial(l load, n noise, e effect) *trial {
	return &trial{trace: t.trace, load: l, noise: n, effect: e, long: t.hours * hour}
}

// wants says whether a line is asked for.
func (t *table) wants(name string) bool { return strings.Contains(name, t.only) }

// figures prints each load's figures beside the finding's.
func (t *table) figures() {
	fmt.Println("| load | requests | mean TTFT | finding | met a queue | finding | calm | finding |")
	fmt.Println("|---|---|---|---|---|---|---|---|")
	for _, l := range t.loads {
		requests, f := t.trial(l, noises[0], effect{}).figures(t.rollouts)
		fmt.Printf("| %s | %d | %.3f s | %s | %.0f %% | %s | %.0f %% | %s |\n", l.name, requests, f.ttft,
			known("%.2f s", l.seen.ttft), 100*f.queued, known("%.0f %%", 100*l.seen.queued),
			100*f.calm, known("%.0f %%", 100*l.seen.calm))
	}
}

// known is a figure's text; 0: the finding has none.
func known(format string, figure float64) string {
	if figure == 0 {
		return "–"
	}
	return fmt.Sprintf(format, figure)
}

// figures are those of a trial's baseline, over its rollouts.
func (t *trial) figures(rollouts int) (requests int, f figures) {
	for r := range rollouts {
		c := canary.New(canary.Defaults())
		last := 0.0 // first token of all before
		t.each(uint64(r), func(p canary.Pair) bool {
			c.Add(&p)
			requests++
			b := &p.Requests[canary.Baseline]
			f.ttft += b.TTFT.Seconds()
			if b.Sent.Sub(start).Seconds() < last {
				f.queued++
			}
			last = max(last, b.First.Sub(start).Seconds())
			if p.Calm {
				f.calm++
			}
			return true
		})
	}
	n := float64(requests)
	return requests, figures{f.ttft / n, f.queued / n, f.calm / n}
}

// A line is a noise at a load, for each of the wanders.
type line struct {
	name  string
	noise noise
	load  load
}

func (t *table) lines(all []noise) (lines []line) {
	for _, n := range all {
		for _, l := range t.loads {
			if n.at != nil && n.at.rate == l.rate { // which carries the noise
				pods := l.pods
				l, l.pods = *n.at, pods
			}
			if name := fmt.Sprintf("%s, %s, %d a side", n.name, l.name, l.pods); t.wants(name) {
				lines = append(lines, line{name, n, l})
			}
		}
	}
	return lines
}

// judges returns one for each wander.
func (t *table) judges(slower float64, isPast bool) (all []judge) {
	for _, w := range t.wanders {
		all = append(all, judge{t.options(w), slower, isPast})
	}
	return all
}

// promise prints how often equal servers are convicted, and what is said of a candidate whose latencies are exactly at
// the tolerance: a fail and a pass are both wrong there. First verdicts count. The bounds hold for the lines of all
// noises together, so that a table can be played in parts.
func (t *table) promise() error {
	lines := t.lines(noises)
	equal := t.judges(1, false)
	exact := t.judges(1+equal[0].options.Tolerance, false)
	both := slices.Concat(equal, exact)
	// Of the rest nothing can pass. An equal server fails only where one at the tolerance does, and with a wander only where one with a
	// smaller wander does, at some time.
	var first, rest []judge
	var places [2][]int
	sieve := -1 // in first: the candidate at the tolerance with the greatest wander of these
	for i, j := range both {
		if j.options.Wander >= math.Log1p(j.options.Tolerance) {
			rest, places[1] = append(rest, j), append(places[1], i)
			continue
		}
		if first, places[0] = append(first, j), append(places[0], i); i >= len(equal) && (sieve < 0 || j.options.Wander >= first[sieve].options.Wander) {
			sieve = len(first) - 1
		}
	}
	if len(rest) > 0 && sieve >= 0 {
		first[sieve].isPast = true
	}
	level := 1 - 0.05/float64(len(noises)*len(t.loads)*len(t.wanders))
	fmt.Println("| noise, load, pods | w | equal: fail, by metric | at the tolerance: fail | pass | " +
		"equal: decided | minutes | 1 % |")
	fmt.Println("|---|---|---|---|---|---|---|---|")
	for _, l := range lines {
		of := t.trial(l.load, l.noise, effect{})
		all := make([][]said, t.rollouts)
		parallel(t.rollouts, func(r int) {
			all[r] = make([]said, len(both))
			failed := sieve < 0
			for i, s := range of.rollout(uint64(r), first) {
				all[r][places[0][i]] = s
				failed = failed || i == sieve && !math.IsNaN(s.failed)
			}
			for _, i := range places[1] {
				all[r][i] = said{verdict: canary.Undecided, at: math.NaN(), failed: math.NaN()}
			}
			if failed && len(rest) > 0 {
				for i, s := range of.rollout(uint64(r), rest) {
					all[r][places[1][i]] = s
				}
			}
		})
		for i, w := range t.wanders {
			e, x := newCount(all, i), newCount(all, len(equal)+i)
			rates := []rate{{e.fails, e.n}, {x.fails, x.n}, {x.passes, x.n}}
			fmt.Printf("| %s | %.0f %% | %s%s | %s | %s | %.0f %% | %s | %s |\n", l.name, 100*w,
				rates[0].text(level), e.byMetric(), rates[1].text(level), rates[2].text(level),
				100*float64(e.fails+e.passes)/float64(e.n), middle(e.minutes), kept(rates, level, equal[i].options.Alpha))
		}
	}
	return nil
}

// kept says whether rates are at most α.
func kept(rates []rate, level, alpha float64) string {
	word := "shown"
	for _, r := range rates {
		low, high := r.interval(level)
		if low > alpha {
			return "**broken**"
		}
		if high > alpha {
			word = "not refuted"
		}
	}
	return word
}

// effects prints how often and how soon a slower candidate fails, a pass before it or not; and how often a faster one
// does.
func (t *table) effects() error {
	judges := t.judges(1, true)
	var some []noise
	for _, name := range []string{
		"independent", "drift 3 %, 10 min", "neighbor 20 %, 10 min each 2 h", "60 sessions of 15 min, each 30 s",
	} {
		some = append(some, noiseOf(name))
	}
	lines := t.lines(some)
	fmt.Println("| candidate, noise, load, pods | w | first verdict: fail, pass | fails in 30 min | " +
		"in all, by metric | minutes |")
	fmt.Println("|---|---|---|---|---|---|")
	for _, e := range append(effects[:len(effects):len(effects)], fasters...) {
		for _, l := range lines {
			all := t.trial(l.load, l.noise, e).rollouts(t.rollouts, judges)
			for i, w := range t.wanders {
				c := newCount(all, i)
				share := func(most float64) float64 { return 100 * float64(within(c.failed, most)) / float64(c.n) }
				fmt.Printf("| %s, %s | %.0f %% | %d, %d of %d | %.0f %% | %.0f %%%s | %s |\n", e.name, l.name, 100*w,
					c.fails, c.passes, c.n, share(30), share(t.hours*60), c.byMetric(), middle(c.failed))
			}
		}
	}
	return nil
}
