package main

import (
	"fmt"
	"math"
)

// calibration prints how often the judge convicts servers that are not slower, beside the findings. A noise counts if
// that is not seldomer than the finding's 95 % interval allows.
func (t *table) calibration() error {
	fmt.Println("| noise, candidate, load | first verdict fail, by metric | finding | counts |")
	fmt.Println("|---|---|---|---|")
	for _, n := range noises {
		l := &loads[0]
		if n.at != nil {
			l = n.at
		}
		if err := t.compare(n.name, t.trial(*l, n, effect{}), n.seen); err != nil {
			return err
		}
	}
	for i, l := range loads[:2] {
		for _, e := range fasters {
			if i > 0 && e.seen[i].n == 0 {
				continue
			}
			if err := t.compare(e.name, t.trial(l, noises[0], e), e.seen[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// compare prints a line.
func (t *table) compare(name string, of *trial, seen rate) error {
	if name += ", " + of.load.name; !t.wants(name) {
		return nil
	}
	c := newCount(of.rollouts(t.rollouts, []judge{{options: t.options(0), slower: 1}}), 0)
	fails, finding, counts := rate{c.fails, c.n}, "none", "no finding"
	if seen.n > 0 {
		low, high := seen.interval(0.95)
		finding = seen.text(0.95)
		switch share := float64(c.fails) / float64(c.n); {
		case share > high:
			counts = "yes, above"
		case math.Round(1000*share) >= math.Round(1000*low): // as printed: 0 of 500 are no fewer than 1 of 500
			counts = "yes"
		default:
			counts = "**no**"
		}
	}
	fmt.Printf("| %s | %s%s | %s | %s |\n", name, fails.text(0.95), c.byMetric(), finding, counts)
	return nil
}
