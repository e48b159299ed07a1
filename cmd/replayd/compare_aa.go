package main

import (
	"errors"
	"fmt"

	"replayd/internal/canary"
)

// mostWander bounds the blocks from which a wander is proposed: a week of blocks of a minute.
const mostWander = 7 * 24 * 60

// add keeps a block, for the page and for the proposal of a wander.
func (p *comparePage) add(b canary.Block, aa bool) {
	p.history.Block(b)
	if aa && len(p.blocks) < mostWander {
		p.blocks = append(p.blocks, b)
	}
}

// printWander prints how far the ratio of two equal servers has wandered. err is why the comparison ended before its time; nil: it did not.
func (o *compareCommand) printWander(w *world, p *comparePage, last *canary.Judgment, err error) error {
	found, ok := canary.WanderOf(p.blocks)
	if !ok {
		fmt.Fprintf(w.out, "wander: too few blocks with latencies: %d of 22 or more: %s\n", last.Useful, last.Why(o.Options))
		if err != nil {
			return err
		}
		return &exitError{exitUndecided, fmt.Errorf("no wander in %v", o.Longest)}
	}
	fmt.Fprintf(w.out, "pairs: %d, void: %d\nwander: %s\n", last.Pairs.Judged, last.Pairs.Void, found.Text())
	var cut *signaled
	if errors.As(err, &cut) { // what was measured is told, and that it is less than was asked for
		return &exitError{cut.code(), fmt.Errorf("%w before the end of %v", err, o.Longest)}
	}
	return err
}
