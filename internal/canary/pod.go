package canary

import (
	"cmp"
	"slices"
	"time"
)

// maxPods bounds the pods of a side that are told apart: openai.MaxPods.
const maxPods = 64

// A pod has the instants and counts of one pod of a side. A side whose pods are not known has one, of number 0.
type pod struct {
	at               time.Time // instant of the latest request
	earlier, present time.Time // latest first token among requests of earlier instants, and of this one
	ends             time.Time // of the latest answer of the open block
	free             time.Time // when the block before had its last answer; pairs before that are not calm
	recent           calmness
}

// A calmness is judged pairs, and the calm ones of them. Those of long ago count less.
type calmness struct{ judged, calm float64 }

func (s *calmness) add(calm bool) {
	s.judged++
	if calm {
		s.calm++
	}
}

func (c *Comparison) podOf(side Side, number uint16) *pod {
	n := min(int(number), maxPods)
	for len(c.pods[side]) <= n {
		c.pods[side] = append(c.pods[side], c.unknown[side])
	}
	return &c.pods[side][n]
}

// haveMany says whether a side has several pods: then hardly any instant has no queue at any of them.
func (c *Comparison) haveMany() bool { return max(len(c.pods[Baseline]), len(c.pods[Candidate])) > 2 }

// meet returns which sides had an earlier request without a first token, at the pod that the pair's request went to, when the pair was sent. A request
// that has failed waits no more. A request that was not sent meets nothing.
func (c *Comparison) meet(p *Pair) (queued [2]bool) {
	for side, r := range p.Requests {
		if r.Sent.IsZero() {
			continue
		}
		q := c.podOf(Side(side), r.Pod)
		if p.At.After(q.at) {
			q.at, q.earlier = p.At, later(q.earlier, q.present)
		}
		queued[side] = q.earlier.After(r.Sent)
		q.present = later(q.present, cmp.Or(r.First, r.End))
	}
	return queued
}

// overlaps says whether a pair was sent before the answers of the block before had ended, at its own pods.
func (c *Comparison) overlaps(p *Pair) bool {
	for side, r := range p.Requests {
		if !r.Sent.IsZero() && p.At.Before(c.podOf(Side(side), r.Pod).free) {
			return true
		}
	}
	return false
}

func (c *Comparison) answered(p *Pair) {
	for side, r := range p.Requests {
		if r.E2E > 0 {
			q := c.podOf(Side(side), r.Pod)
			q.ends = later(q.ends, r.End)
		}
	}
}

// A pod is unseen from so many calm pairs on that it should have had, if it has had fewer than a part of them.
const (
	unseenLeast = 12 // fewer than 3 of 12 come by chance in 1 of 2,000 cases
	unseenPart  = 4
)

func (c *Comparison) see(p *Pair) {
	for side, r := range p.Requests {
		if r.Sent.IsZero() {
			continue
		}
		c.podOf(Side(side), r.Pod).recent.add(p.Calm)
		pods, all := c.pods[side], &c.recent[side]
		if all.add(p.Calm); all.calm <= float64(4*unseenLeast*len(pods)) {
			continue
		}
		*all = calmness{all.judged / 2, all.calm / 2}
		for i := range pods {
			of := &pods[i].recent
			*of = calmness{of.judged / 2, of.calm / 2}
		}
	}
}

// unseen returns a pod that gets requests as others of its side do, and has hardly any calm pairs: each of its answers lasts longer than a block, or each
// of its requests waits. Without it the others would speak for it. number is 0 if there is none.
func (c *Comparison) unseen() (side Side, number int) {
	if !c.haveMany() {
		return 0, 0
	}
	for side, pods := range c.pods {
		all := c.recent[side]
		for i, p := range pods {
			if due := p.recent.judged * all.calm / all.judged; due >= unseenLeast && unseenPart*p.recent.calm < due {
				return Side(side), i
			}
		}
	}
	return 0, 0
}

// freePods ends the block of all pods. Answers that take longer than until an instant are not waited for.
func (c *Comparison) freePods(until time.Time) {
	for side := range c.pods {
		for i := range c.pods[side] {
			p := &c.pods[side][i]
			p.free, p.ends = slices.MinFunc([]time.Time{p.ends, until}, time.Time.Compare), time.Time{}
		}
	}
}

// ChangePods says that a side has other pods from now on, or in another order. Until it is known of each, it is as busy as the busiest was.
func (c *Comparison) ChangePods(side Side) {
	busiest := pod{}
	for _, p := range c.pods[side] {
		busiest.earlier = later(busiest.earlier, later(p.earlier, p.present))
		busiest.ends, busiest.free = later(busiest.ends, p.ends), later(busiest.free, p.free)
	}
	c.pods[side], c.unknown[side], c.recent[side] = nil, busiest, calmness{}
	c.RestartLatencies()
}

func later(a, b time.Time) time.Time { return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare) }
