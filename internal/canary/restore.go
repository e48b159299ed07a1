package canary

import (
	"fmt"
	"maps"
	"slices"
)

// Restore returns the comparison of a snapshot. The options pass Check and are those of the snapshot: evidence that was
// made with other options does not count. The file's checksum holds the numbers. Restore checks sizes, indices and names,
// so that no file can make a comparison panic or grow.
func Restore(o Options, s Snapshot) (*Comparison, error) {
	c := New(o)
	f := &restoring{}
	f.want(s.Options == o, "options", fmt.Sprintf("%+v", o), s.Options)
	tests, watch := len(Metrics), 0
	if c.watch != nil {
		tests, watch = 0, len(Metrics)
	}
	f.size("tests", len(s.Tests), tests)
	f.size("watch", len(s.Watch), watch)
	var tail [2 * tailSteps]int64
	f.unpack("tail", tail[:], s.Tail)
	for i, n := range tail {
		c.tail.counts[i/tailSteps][i%tailSteps] = n
		c.tail.all[i/tailSteps] += n
	}
	if s.Failed != "" {
		c.failed = Metric(slices.IndexFunc(Metrics[:], func(m Metric) bool { return m.String() == s.Failed }))
		f.want(c.failed >= 0 && c.watch == nil, "failed", "a metric that was tested", s.Failed)
	}
	c.pairs, c.ended, c.lasted, c.after = s.Pairs, s.Blocks, s.Lasted, s.After
	maps.Copy(c.skipped, s.Skipped)
	c.answers.restore(&s.Answers, f)
	c.sight.SightSnapshot = s.Sight
	c.toWarm = s.ToWarm
	for m := range c.overall {
		f.unpack("overall", c.overall[m][:], s.Overall[m])
	}
	if f.err != nil {
		return nil, f.err
	}
	f.want(s.Looks == nil || c.looks != nil, "looks", "them with a verdict only", s.Looks != nil)
	if s.Looks != nil && c.looks != nil {
		f.at = "looks."
		c.looks.restore(s.Looks, f)
	}
	for m := range s.Tests {
		f.at = fmt.Sprintf("tests[%d].", m)
		c.tests[m].restore(&s.Tests[m], f)
		c.tests[m].clamp(o.FailLog10())
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

// A restoring has the first field of a snapshot that no comparison can have made.
type restoring struct {
	at  string // the field's place
	err error
}

func (f *restoring) want(ok bool, field, want string, got any) {
	if !ok && f.err == nil {
		f.err = fmt.Errorf("%s%s: want %s, got %v", f.at, field, want, got)
	}
}

func (f *restoring) size(field string, got, want int) {
	f.want(got == want, field, fmt.Sprint(want), got)
}

// unpack fills counts, and returns their sum.
func (f *restoring) unpack(field string, counts []int64, from []byte) int64 {
	all, ok := unpack(counts, from)
	f.want(ok, field, fmt.Sprintf("counts of %d cells", len(counts)), len(from))
	return all
}

func (f *restoring) neighbors(n neighbors) neighbors {
	got := len(n.Stretches)
	f.want(got <= maxStretches, "neighbours.stretches", fmt.Sprintf("at most %d", maxStretches), got)
	return n.clone()
}

func (t *test) restore(s *TestSnapshot, f *restoring) {
	t.TestSnapshot = *s
	t.Cells, t.Course = nil, nil
	bits := s.Above + s.At + s.Below
	if t.metric.IsLatency() {
		t.ratio.n = f.unpack("cells", t.ratio.counts[:], s.Cells)
		f.want(t.ratio.n == bits, "cells", fmt.Sprint(bits), t.ratio.n)
		f.want(s.Lower >= -1 && s.Lower <= 2*cells, "lower", fmt.Sprintf("-1 to %d", 2*cells), s.Lower)
		f.want(s.Upper >= 0 && s.Upper <= 2*cells+1, "upper", fmt.Sprintf("0 to %d", 2*cells+1), s.Upper)
		t.ratio.restarted(s.Worse.Count)
		t.ratio.setBounds(s.Lower, s.Upper)
		f.want(t.course.unpack(s.Course), "course", fmt.Sprintf("at most %d values", courseBlocks), len(s.Course))
		t.At = 0
	} else {
		bits = s.Above + s.Below
	}
	t.Worse.Evidence, t.Better.Evidence = Evidence{s.Above, bits}, Evidence{s.Below, bits}
	t.neighbors = f.neighbors(s.Neighbors)
	f.want(s.Outage[0] <= s.Outage[1], "outage", "no more ones than bits", s.Outage)
	t.outage = Evidence{s.Outage[0], s.Outage[1]}
	if t.long != nil {
		*t.long = long{s.Open, s.OpenBlocks}
	}
}

func (w *watched) restore(s *WatchedSnapshot, f *restoring) {
	to := w.metric.Directions()
	known := s.Direction == "" || slices.Contains(to[:2], s.Direction)
	f.want(known, "direction", fmt.Sprintf("none, %s or %s", to[0], to[1]), s.Direction)
	w.direction, w.since, w.found, w.open = s.Direction, s.Since, s.Found, s.Open
	w.neighbors = f.neighbors(s.Neighbors)
	f.size("changes", copy(w.changes[:], s.Changes), len(w.changes))
	f.size("up", copy(w.up.bettors[:], s.Up), len(stakes))
	f.size("down", copy(w.down.bettors[:], s.Down), len(stakes))
	f.size("back", copy(w.back.bettors[:], s.Back), len(stakes))
	f.size("values, tallies", len(s.Values)+len(s.Tallies), int(min(s.Neighbors.Values, recentBlocks)))
	w.values, w.tallies = slices.Clone(s.Values), slices.Clone(s.Tallies)
}
