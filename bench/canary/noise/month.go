package main

import (
	"fmt"
	"math"
	"strings"

	"replayd/internal/canary"
)

// month prints what watches found in 30 days of pairs of two equal servers, and how much their blocks differ. It plays
// each line once: months of blocks, which are played in bench/canary, are held against it.
func (t *table) month() error {
	var some []noise
	for _, name := range []string{
		"independent", "drift 3 %, 10 min", "drift 5 %, 60 min", "neighbor 20 %, 10 min each 2 h",
		"60 sessions of 15 min, each 30 s",
	} {
		some = append(some, noiseOf(name))
	}
	fmt.Println("| noise, load, pods | w | blocks of ttft | their deviation | changes, those back included |")
	fmt.Println("|---|---|---|---|---|")
	for _, l := range t.lines(some) {
		watches := make([]*watching, len(t.wanders))
		for i, w := range t.wanders {
			o := t.options(w)
			o.Mode = canary.ModeWatch
			watches[i] = newWatching(o)
		}
		of := t.trial(l.load, l.noise, effect{})
		of.long = 30 * 24 * hour
		of.each(0, func(p canary.Pair) bool {
			for _, w := range watches {
				pair := p
				w.Add(&pair)
			}
			return true
		})
		for i, w := range watches {
			fmt.Printf("| %s | %.0f %% | %d | %.1f %% | %s |\n", l.name, 100*t.wanders[i], w.blocks, 100*w.deviation(), w.changes())
		}
	}
	return nil
}

// A watching is a comparison that never ends, with the sums over its blocks.
type watching struct {
	*canary.Comparison
	counters     *canary.Counters
	blocks       int
	sum, squares float64 // of the logarithms of the ratio of TTFT
}

func newWatching(o canary.Options) *watching {
	w := &watching{Comparison: canary.New(o), counters: canary.NewCounters()}
	w.Count(w.counters)
	w.Ended = func(b canary.Block) {
		if ratio := b.Metrics[canary.TTFT].Ratio; !math.IsNaN(ratio) {
			w.blocks++
			w.sum += math.Log(ratio)
			w.squares += math.Log(ratio) * math.Log(ratio)
		}
	}
	return w
}

func (w *watching) deviation() float64 {
	n := float64(w.blocks)
	return math.Sqrt(w.squares/n - w.sum/n*w.sum/n)
}

// changes are the changes of each metric.
func (w *watching) changes() string {
	var all []string
	for m, totals := range w.counters.Totals().Metrics {
		n := int64(0)
		for _, of := range totals.Changes {
			n += of
		}
		if n > 0 {
			all = append(all, fmt.Sprintf("%s:%d", canary.Metric(m), n))
		}
	}
	if len(all) == 0 {
		return "0"
	}
	return strings.Join(all, " ")
}
