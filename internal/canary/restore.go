package canary

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Restore returns the comparison of a snapshot. The options pass Check and are those of the snapshot: evidence that was made with others is none for
// these. It checks every number, and names the first field that no comparison can have made.
func Restore(o Options, s Snapshot) (*Comparison, error) {
	c := New(o)
	f := &fault{}
	f.want(s.Options == o, "options", fmt.Sprintf("%+v", o), s.Options)
	f.pairs("pairs", s.Pairs)
	f.count("blocks", s.Blocks, mostBlocks)
	f.want(s.Lasted >= 0, "lasted_ns", "0 or more", int64(s.Lasted))
	for why, n := range s.Skipped {
		f.want(slices.Contains(Skips, why), "skipped", "known reasons", why)
		f.count("skipped", n, s.Blocks)
		c.skipped[why] = n
	}
	var ok bool
	c.tail.all, ok = unpack(c.tail.counts[:], s.Tail)
	f.want(ok, "tail", fmt.Sprintf("counts of %d cells", len(c.tail.counts)), len(s.Tail))
	c.pairs, c.ended, c.lasted, c.free = s.Pairs, s.Blocks, s.Lasted, s.Free
	tests, watch := len(Metrics), 0
	if c.watch != nil {
		tests, watch = 0, len(Metrics)
	}
	f.want(len(s.Tests) == tests, "tests", fmt.Sprint(tests), len(s.Tests))
	f.want(len(s.Watch) == watch, "watch", fmt.Sprint(watch), len(s.Watch))
	if s.Failed != "" {
		c.failed = Metric(slices.IndexFunc(Metrics[:], func(m Metric) bool { return m.String() == s.Failed }))
		f.want(c.failed >= 0 && c.watch == nil, "failed", "a metric that was tested", s.Failed)
	}
	c.totals.restore(s.Totals, f)
	if f.err != nil {
		return nil, f.err
	}
	for m := range s.Tests {
		f.at = fmt.Sprintf("tests[%d].", m)
		c.tests[m].restore(&s.Tests[m], s.Blocks, f)
	}
	for m := range s.Watch {
		f.at = fmt.Sprintf("watch[%d].", m)
		c.watch.metrics[m].restore(&s.Watch[m], f)
	}
	if f.err != nil {
		return nil, f.err
	}
	return c, nil
}

const (
	mostBlocks = 1 << 32 // a block a second for 136 years
	mostPairs  = 1 << 52 // a million a second for as long
	mostValue  = 50      // of a block: the longest time is e⁴⁴ times the shortest
)

// A fault is the first field of a snapshot that no comparison can have made.
type fault struct {
	at  string // the field's place
	err error
}

func (f *fault) want(ok bool, field, want string, got any) {
	if !ok && f.err == nil {
		f.err = fmt.Errorf("%s%s: want %s, got %v", f.at, field, want, got)
	}
}

func (f *fault) count(field string, got, most int64) {
	f.want(got >= 0 && got <= most, field, fmt.Sprintf("0 to %d", most), got)
}

// number refuses NaN as well.
func (f *fault) number(field string, got, low, high float64) {
	f.want(got >= low && got <= high, field, fmt.Sprintf("a number from %v to %v", low, high), got)
}

func (f *fault) pairs(field string, p Pairs) {
	f.count(field+".judged", p.Judged, mostPairs)
	f.count(field+".void", p.Void, mostPairs)
}

func (f *fault) tally(field string, t Tally) {
	f.count(field+".pairs", t.Pairs, mostPairs)
	f.count(field+".baseline", t.Baseline, t.Pairs)
	f.count(field+".candidate", t.Candidate, t.Pairs)
}

func (t *Totals) restore(s Totals, f *fault) {
	f.pairs("totals.pairs", s.Pairs)
	t.Pairs = s.Pairs
	for why, n := range s.Skipped {
		f.want(slices.Contains(Skips, why), "totals.skipped", "known reasons", why)
		f.count("totals.skipped", n, mostBlocks)
		t.Skipped[why] = n
	}
	f.want(len(s.Metrics) == len(t.Metrics), "totals.metrics", fmt.Sprint(len(t.Metrics)), len(s.Metrics))
	for m := range min(len(s.Metrics), len(t.Metrics)) {
		from, to, directions := &s.Metrics[m], &t.Metrics[m], Metric(m).Directions()
		f.count("totals.metrics.above", from.Above, mostBlocks)
		f.count("totals.metrics.at", from.At, mostBlocks)
		f.count("totals.metrics.below", from.Below, mostBlocks)
		to.Above, to.At, to.Below = from.Above, from.At, from.Below
		for d, n := range from.Changes {
			f.want(slices.Contains(directions[:], d), "totals.metrics.changes", fmt.Sprint(directions), d)
			f.count("totals.metrics.changes", n, mostBlocks)
			to.Changes[d] = n
		}
	}
}

func (t *test) restore(s *TestSnapshot, blocks int64, f *fault) {
	f.want(s.Metric == t.metric.String(), "metric", t.metric.String(), s.Metric)
	f.count("above", s.Above, blocks)
	f.count("at", s.At, blocks)
	f.count("below", s.Below, blocks)
	n := s.Above + s.At + s.Below
	f.count("above, at and below", n, blocks)
	f.want(s.Neighbours.Values == n, "neighbours.values", fmt.Sprint(n), s.Neighbours.Values)
	f.neighbours(s.Neighbours)
	f.tally("all", s.All)
	bits := n
	if t.metric.IsLatency() {
		sum, ok := unpack(t.ratio.counts[:], s.Cells)
		f.want(ok, "cells", fmt.Sprintf("counts of %d cells", len(t.ratio.counts)), len(s.Cells))
		f.want(sum == n, "cells", fmt.Sprint(n), sum)
		f.want(s.Lower >= -1 && s.Lower <= 2*cells, "lower", fmt.Sprintf("-1 to %d", 2*cells), s.Lower)
		f.want(s.Upper >= 0 && s.Upper <= 2*cells+1, "upper", fmt.Sprintf("0 to %d", 2*cells+1), s.Upper)
		f.want(s.All == Tally{}, "all", "none", s.All)
		t.ratio.n = sum
		t.ratio.setBounds(s.Lower, s.Upper)
		if s.Passed {
			t.ratio.upper = min(t.ratio.upper, t.threshold)
		}
	} else {
		f.want(!s.Passed && len(s.Cells) == 0, "passed, cells", "none", t.metric)
		bits, t.ties = s.Above+s.Below, s.At
	}
	t.worse, t.better = Evidence{s.Above, bits}, Evidence{s.Below, bits}
	t.passed, t.neighbours, t.all = s.Passed, s.Neighbours.clone(), s.All
}

func (w *watched) restore(s *WatchedSnapshot, f *fault) {
	f.want(s.Metric == w.metric.String(), "metric", w.metric.String(), s.Metric)
	to := w.metric.Directions()
	f.want(s.Direction == "" || s.Direction == to[0] || s.Direction == to[1], "direction", fmt.Sprintf("none, %s or %s", to[0], to[1]), s.Direction)
	f.want(!s.Found.Before(s.Since), "found", "an instant after "+s.Since.Format(time.RFC3339), s.Found.Format(time.RFC3339))
	f.want(len(s.Changes) == len(w.changes), "changes", fmt.Sprint(len(w.changes)), len(s.Changes))
	for _, n := range s.Changes {
		f.count("changes", n, mostBlocks)
	}
	copy(w.changes[:], s.Changes)
	open := int64(0)
	if s.Direction != "" {
		open = 1
	}
	f.want(w.changes[0]+w.changes[1]-w.changes[2] == open, "changes", fmt.Sprintf("%d that is not back", open), s.Changes)
	f.detector("up", &w.up, s.Up)
	f.detector("down", &w.down, s.Down)
	f.detector("back", &w.back, s.Back)
	f.tally("open", s.Open.Tally)
	w.direction, w.since, w.found, w.open = s.Direction, s.Since, s.Found, s.Open
	f.want(w.open.Pairs == 0 || open == 1 && !w.metric.IsLatency() && !w.enough(), "open.pairs", "fewer", w.open.Pairs)
	f.neighbours(s.Neighbours)
	w.neighbours = s.Neighbours.clone()
	n, none := len(s.Values), len(s.Tallies)
	if !w.metric.IsLatency() {
		n, none = none, n
	}
	f.want(none == 0, "values, tallies", "those of "+w.metric.String(), none)
	f.want(int64(n) == min(s.Neighbours.Values, recentBlocks), "values, tallies", fmt.Sprint(min(s.Neighbours.Values, recentBlocks)), n)
	if f.err != nil {
		return
	}
	for _, v := range s.Values {
		f.number("values", v, -mostValue, mostValue)
		w.recent.addValue(v)
	}
	for _, t := range s.Tallies {
		f.tally("tallies", t)
		w.recent.addTally(t)
	}
}

func (f *fault) detector(field string, d *Detector, bettors []bettor) {
	f.want(len(bettors) == len(stakes), field, fmt.Sprint(len(stakes)), len(bettors))
	copy(d.bettors[:], bettors)
	for _, b := range d.bettors {
		f.number(field+".sum", b.Sum, 0, math.MaxFloat64)
		f.number(field+".recent", b.Recent, 0, b.Sum)
		f.tally(field+".since", b.Since.Tally)
	}
	f.want(d.mean() < d.bound, field, fmt.Sprintf("a mean below %v", d.bound), d.mean())
}

func (f *fault) neighbours(n neighbours) {
	f.count("neighbours.values", n.Values, mostBlocks)
	p := n.Present
	f.want(p.N == n.Values%stretchBlocks, "neighbours.present.n", fmt.Sprint(n.Values%stretchBlocks), p.N)
	most := float64(p.N) * mostValue
	f.number("neighbours.first", p.First, -mostValue, mostValue)
	f.number("neighbours.last", p.Last, -mostValue, mostValue)
	f.number("neighbours.sum", p.Sum, -most, most)
	f.number("neighbours.squares", p.Squares, 0, most*mostValue)
	f.number("neighbours.products", p.Products, -most*mostValue, most*mostValue)
	whole := min(n.Values/stretchBlocks, mostStretches)
	f.want(int64(len(n.Stretches)) == whole, "neighbours.stretches", fmt.Sprint(whole), len(n.Stretches))
	for _, r := range n.Stretches {
		f.number("neighbours.stretches", r, -2, 2)
	}
}
