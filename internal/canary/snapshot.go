package canary

import (
	"encoding/binary"
	"maps"
	"slices"
	"time"
)

// A Snapshot is the evidence of a comparison between two blocks. It has neither the pairs of the open block nor what is queued: whoever goes on
// from it loses one block. It has no instant of this process either, whose answers have ended for whoever goes on. As JSON it is below 96 KiB.
type Snapshot struct {
	Options Options           `json:"options"`
	Pairs   Pairs             `json:"pairs"`
	Blocks  int64             `json:"blocks"`
	Lasted  time.Duration     `json:"lasted_ns"` // all blocks
	Failed  string            `json:"failed"`    // metric; "": none
	After   time.Duration     `json:"failed_after_ns"`
	Skipped map[Skip]int64    `json:"skipped"`
	Tail    []byte            `json:"tail"`  // counts
	Tests   []TestSnapshot    `json:"tests"` // in the mode verdict, one for each metric
	Watch   []WatchedSnapshot `json:"watch"` // in the mode watch, one for each metric
	Answers AnswersSnapshot   `json:"answers"`
	Sight   SightSnapshot     `json:"sight"`
	Overall [E2E + 1][]byte   `json:"overall"` // counts of the ratios of all pairs, by latency
	ToWarm  time.Duration     `json:"to_warm_ns"`
	Looks   *LooksSnapshot    `json:"looks,omitempty"` // in the mode verdict
}

// A SightSnapshot is what a comparison has seen of latencies since their evidence began.
type SightSnapshot struct {
	Unseen Sight         `json:"unseen"` // of blocks since the latest one that has given bits for latencies
	Seen   Sight         `json:"seen"`   // of all blocks before
	Useful int64         `json:"useful"` // blocks with bits for latencies
	Took   time.Duration `json:"took_ns"`
	Begun  time.Duration `json:"begun_ns"`  // before the open block
	Missed time.Duration `json:"missed_ns"` // likewise, since the latest useful block
}

// A TestSnapshot is the evidence about a metric.
type TestSnapshot struct {
	Metric    string    `json:"metric"`
	Above     int64     `json:"above"` // blocks
	At        int64     `json:"at"`    // of a share: those with as many on both sides
	Below     int64     `json:"below"`
	Passed    bool      `json:"passed"` // a latency's evidence for "not worse" has reached its bound, or a share's excess is surely within its tolerance
	Neighbors neighbors `json:"neighbours"`
	All       Tally     `json:"all"`    // requests of a share, since the latest restart of an engine
	Before    Tally     `json:"before"` // those before it
	Blocks    int64     `json:"blocks"` // of a share, with a value
	Excess    excess    `json:"excess"`

	// Of a latency: above and below the threshold; of a share: the candidate, and the baseline, has more. As JSON they are those of the restarts
	// before the latest one: Above, At and Below are since then.
	Worse      Restarts  `json:"worse"`
	Better     Restarts  `json:"better"`
	Outage     [2]int64  `json:"outage"` // bits of bad: ones, and all
	Open       Span      `json:"open"`   // the long block of a share
	OpenBlocks int       `json:"open_blocks"`
	Changed    time.Time `json:"changed"` // when the ratio of a latency changed, if its interval is empty; else zero

	Cells []byte `json:"cells"` // counts of a latency's values by cell of its interval
	Lower int    `json:"lower"` // bounds of the interval, as cells
	Upper int    `json:"upper"`

	Course []byte `json:"course"` // latest values of a latency
}

// A WatchedSnapshot is the state of a metric of a watch.
type WatchedSnapshot struct {
	Metric    string    `json:"metric"`
	Direction Direction `json:"direction"`
	Since     time.Time `json:"since"`
	Found     time.Time `json:"found"`
	Changes   []int64   `json:"changes"` // by direction
	Up        []bettor  `json:"up"`
	Down      []bettor  `json:"down"`
	Back      []bettor  `json:"back"`
	Open      Span      `json:"open"`
	Values    []float64 `json:"values"`  // of a latency's recent blocks, in order
	Tallies   []Tally   `json:"tallies"` // of a share's
	Neighbors neighbors `json:"neighbours"`
}

// Snapshot returns the state without the open block.
func (c *Comparison) Snapshot() Snapshot {
	s := Snapshot{
		Options: c.options, Pairs: c.pairs.Less(c.block.Pairs), Blocks: c.ended, Lasted: c.lasted, Skipped: maps.Clone(c.skipped),
		Tail: packed(slices.Concat(c.tail.counts[0][:], c.tail.counts[1][:])), Answers: c.answers.snapshot(),
		Sight: c.sight.snapshot(c.opened), ToWarm: c.toWarm,
	}
	if !c.warm.IsZero() {
		s.ToWarm = max(0, c.warm.Sub(c.last))
	}
	if c.looks != nil {
		s.Looks = new(c.looks.snapshot(c.last))
	}
	for m := range c.overall {
		s.Overall[m] = packed(c.overall[m][:])
	}
	if c.failed >= 0 {
		s.Failed, s.After = c.failed.String(), c.after
	}
	for m := range Metrics {
		if c.watch != nil {
			s.Watch = append(s.Watch, c.watch.metrics[m].snapshot())
		} else {
			s.Tests = append(s.Tests, c.tests[m].snapshot())
		}
	}
	return s
}

// snapshot returns what has been seen before the open block.
func (s *sight) snapshot(opened time.Time) SightSnapshot {
	before := func(at time.Time) time.Duration {
		if at.IsZero() {
			return 0
		}
		return max(0, opened.Sub(at))
	}
	snapshot := s.SightSnapshot
	snapshot.Begun, snapshot.Missed = max(s.Begun, before(s.begin)), max(s.Missed, before(s.since))
	return snapshot
}

func (t *test) snapshot() TestSnapshot {
	s := t.TestSnapshot
	s.Metric, s.Neighbors, s.Changed = t.metric.String(), t.neighbors.clone(), t.Changed.Round(0)
	s.Above, s.Below, s.Outage = t.Worse.Ones, t.Better.Ones, [2]int64{t.outage.Ones, t.outage.Bits}
	if t.long != nil {
		s.Open, s.OpenBlocks = t.long.open, t.long.blocks
	}
	if t.metric.IsLatency() {
		s.At = t.Worse.Bits - s.Above - s.Below
		s.Cells, s.Lower, s.Upper = packed(t.ratio.counts[:]), t.ratio.lowerCell, t.ratio.upperCell
		s.Course = t.course.packed()
	}
	return s
}

func (w *watched) snapshot() WatchedSnapshot {
	return WatchedSnapshot{
		Metric: w.metric.String(), Direction: w.direction, Since: w.since.Round(0), Found: later(w.since.Round(0), w.found.Round(0)), Changes: slices.Clone(w.changes[:]),
		Up: slices.Clone(w.up.bettors[:]), Down: slices.Clone(w.down.bettors[:]), Back: slices.Clone(w.back.bettors[:]),
		Open: w.open, Neighbors: w.neighbors.clone(), Values: slices.Clone(w.values), Tallies: slices.Clone(w.tallies),
	}
}

// packed holds the counts that are not 0, each after the number of zeros before it, as varints.
func packed(counts []int64) []byte {
	var b []byte
	zeros := uint64(0)
	for _, n := range counts {
		if n == 0 {
			zeros++
			continue
		}
		b = binary.AppendUvarint(binary.AppendUvarint(b, zeros), uint64(n))
		zeros = 0
	}
	return b
}

// unpack is the reverse of packed. It returns the sum. ok is false for other bytes.
func unpack(counts []int64, b []byte) (sum int64, ok bool) {
	place := uint64(0)
	for len(b) > 0 {
		zeros, n := binary.Uvarint(b)
		if n <= 0 || zeros >= uint64(len(counts)) {
			return 0, false
		}
		count, m := binary.Uvarint(b[n:])
		place += zeros
		if m <= 0 || count == 0 || count > maxPacked || place >= uint64(len(counts)) {
			return 0, false
		}
		counts[place] = int64(count)
		sum += int64(count)
		place++
		b = b[n+m:]
	}
	return sum, true
}

// maxPacked bounds a count, so that no sum overflows. No comparison has as many pairs.
const maxPacked = 1 << 41
