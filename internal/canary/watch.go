package canary

import (
	"math"
	"slices"
	"time"
)

// A Direction is that of a change of a metric.
type Direction string

// Directions; the list is complete.
const (
	Slower Direction = "slower" // a latency is longer by more than the tolerance
	Faster Direction = "faster" // a latency is shorter by more than the tolerance
	More   Direction = "more"   // the candidate's share is larger by more than its tolerance
	Fewer  Direction = "fewer"  // the candidate's share is smaller by more than its tolerance
	Back   Direction = "back"   // within the tolerance again
)

// Directions returns the directions in which a metric changes. The last one is Back.
func (m Metric) Directions() [3]Direction {
	if m.IsLatency() {
		return [3]Direction{Slower, Faster, Back}
	}
	return [3]Direction{More, Fewer, Back}
}

// A Watch finds when a candidate changes against its baseline, and when it changes back. It never ends. All its detectors together give at most one
// false alarm in 30 days on average: a metric has one for each direction while it is normal, and one for the way back after a change.
type Watch struct{ metrics [metrics]watched }

// NewWatch returns a watch in which all metrics are normal.
func NewWatch(o Options) *Watch {
	w := &Watch{}
	for m := range w.metrics {
		w.metrics[m] = newWatched(o, Metric(m))
	}
	return w
}

// Latency adds the value of a block, ln(candidate ÷ baseline). It returns the change that the block reveals; "": none.
func (w *Watch) Latency(m Metric, value float64, begin, end time.Time) Direction {
	return w.metrics[m].latency(value, begin.Round(0).UTC(), end.Round(0).UTC())
}

// Share adds the requests of a block, by side, among its pairs. It returns the change that the block reveals; "": none.
func (w *Watch) Share(m Metric, counts [2]int, pairs int, begin, end time.Time) Direction {
	tally := tallyOf(counts, pairs)
	return w.share(m, tally, tally, tally, begin, end)
}

// share adds a block with the requests that count for the question whether the candidate has more, and those for the one whether it has fewer.
func (w *Watch) share(m Metric, all, more, fewer Tally, begin, end time.Time) Direction {
	return w.metrics[m].share(Span{Begin: begin.Round(0).UTC(), Tally: all}, more, fewer, end.Round(0).UTC())
}

// States returns the state of each metric.
func (w *Watch) States() []WatchState {
	states := make([]WatchState, 0, metrics)
	for m := range w.metrics {
		states = append(states, w.metrics[m].state())
	}
	return states
}

// A watched is a metric of a watch.
type watched struct {
	judged
	direction    Direction // "": normal
	since, found time.Time // of the last change
	changes      [3]int64  // by Directions

	up, down, back Detector  // while the metric is normal, the first two run, after a change the third
	open           Span      // blocks of a share that make the next bit of back
	values         []float64 // of a latency's latest blocks, in order
	tallies        []Tally   // of a share's
}

func newWatched(o Options, m Metric) watched {
	d := Detector{bound: WatchBound(2*int(metrics), o.MinTime)}
	return watched{judged: newJudged(o, m), up: d, down: d, back: d}
}

// recentBlocks is the number of blocks that show what a metric is now.
const recentBlocks = 60

// latency adds a block. Between the two bounds both bits are 0: with one bound, an equal server's blocks would all be on the same side of it.
func (w *watched) latency(value float64, begin, end time.Time) Direction {
	if math.IsNaN(value) {
		return ""
	}
	w.values = latest(w.values, value, recentBlocks)
	w.neighbors.add(value)
	block := Span{Begin: begin}
	switch w.direction {
	case Slower:
		return w.feed(&w.back, value < w.threshold, block, Back, end)
	case Faster:
		return w.feed(&w.back, value > -w.threshold, block, Back, end)
	}
	beyond := w.threshold + w.wander
	return w.feedBoth(value > beyond, value < -beyond, block, block, end)
}

// share adds a block. A tie gives no bit while the metric is normal.
func (w *watched) share(block Span, more, fewer Tally, end time.Time) Direction {
	excess := block.excess()
	w.tallies = latest(w.tallies, block.Tally, recentBlocks)
	w.neighbors.add(excess)
	if w.direction == "" {
		return w.feedBoth(more.excess() > w.least(), fewer.excess() < -w.least(),
			Span{block.Begin, more}, Span{block.Begin, fewer}, end)
	}
	// Most single blocks have no such request at all, even where the share is above its tolerance. So blocks are put together until a share at its
	// tolerance has one on average. Then fewer are no more likely than not.
	if w.open.Pairs == 0 {
		w.open.Begin = block.Begin
	}
	w.open.add(block.Tally)
	if float64(w.open.Pairs)*w.threshold < 1 && w.open.Pairs < maxOpenPairs {
		return ""
	}
	block, w.open = w.open, Span{}
	return w.feed(&w.back, w.within(block.excess()), block, Back, end)
}

// maxOpenPairs bounds the blocks that are put together, for tolerances near 0.
const maxOpenPairs = 10_000

// within says whether a share is no longer beyond its tolerance in the direction of the state.
func (w *watched) within(excess float64) bool {
	if w.direction == Fewer {
		excess = -excess
	}
	return excess < w.threshold
}

// feedBoth gives both detectors of a normal metric their bits. A block of a share with as many requests on both sides gives none.
func (w *watched) feedBoth(up, down bool, above, below Span, end time.Time) Direction {
	to := w.metric.Directions()
	for i, d := range []*Detector{&w.up, &w.down} {
		one, block := [...]bool{up, down}[i], [...]Span{above, below}[i]
		if !w.metric.IsLatency() && block.Baseline == block.Candidate {
			d.skip(block.Tally)
		} else if change := w.feed(d, one, block, to[i], end); change != "" {
			return change
		}
	}
	return ""
}

// feed gives a detector a bit. An alarm changes the state, unless blocks depend on each other, or the share since the change does not bear it out.
// The detector begins anew in any case: a change from a tolerated excess to a greater one would otherwise be averaged with the time before.
func (w *watched) feed(d *Detector, one bool, block Span, to Direction, end time.Time) Direction {
	since, alarm := d.Add(one, block)
	if !alarm || w.depends() || !w.metric.IsLatency() && !w.bearsOut(to, since.excess()) {
		return ""
	}
	w.up.reset()
	w.down.reset()
	w.back.reset()
	w.open = Span{}
	directions := w.metric.Directions()
	w.changes[slices.Index(directions[:], to)]++
	w.since, w.found, w.direction = since.Begin, end, to
	if to == Back {
		w.direction = ""
	}
	return to
}

func (w *watched) bearsOut(to Direction, excess float64) bool {
	switch to {
	case More:
		return excess > w.threshold
	case Fewer:
		return -excess > w.threshold
	}
	return w.within(excess)
}

// A WatchState is the state of a metric of a comparison that never ends.
type WatchState struct {
	Metric    Metric
	Direction Direction // "": the metric is normal
	// Since is the estimated begin of the state, that of a block. Found is the end of the block that revealed it. Both are zero until a change.
	Since, Found time.Time

	Progress   []Progress // of the detectors that run
	BoundLog10 float64    // at which they alarm

	Blocks      int     // the latest ones, at most 60, of which the next two figures are
	Ratio       float64 // of a latency: candidate ÷ baseline, as a median; NaN: unknown
	Excess      float64 // of a share: the candidate's less the baseline's; NaN without a block
	Correlation float64 // of neighbors among the latest 500 blocks; NaN: below 50
	Dependent   bool    // neighboring blocks are too much alike to be evidence: alarms are withheld
}

// Progress says how near a detector is to its alarm.
type Progress struct {
	Direction Direction
	Log10     float64 // of its capital, at least 0
}

func (w *watched) state() WatchState {
	s := WatchState{
		Metric: w.metric, Direction: w.direction, Since: w.since, Found: w.found,
		BoundLog10: math.Log10(w.back.bound), Blocks: len(w.values) + len(w.tallies), Ratio: math.NaN(),
		Correlation: w.neighbors.correlation(), Dependent: w.depends(),
	}
	if to := w.metric.Directions(); w.direction == "" {
		s.Progress = []Progress{{to[0], w.up.log10()}, {to[1], w.down.log10()}}
	} else {
		s.Progress = []Progress{{Back, w.back.log10()}}
	}
	if w.metric.IsLatency() {
		s.Ratio = math.Exp(median(slices.Clone(w.values)))
	} else {
		sum := Tally{}
		for _, t := range w.tallies {
			sum.add(t)
		}
		s.Excess = sum.known()
	}
	return s
}
