package canary

import (
	"encoding/binary"
	"maps"
	"slices"
	"time"
)

// A Snapshot is the evidence of a comparison between two blocks. It has neither the pairs of the open block nor what is queued: whoever goes on
// from it loses one block. As JSON it is below 64 KiB.
type Snapshot struct {
	Options Options           `json:"options"`
	Pairs   Pairs             `json:"pairs"`
	Blocks  int64             `json:"blocks"`
	Lasted  time.Duration     `json:"lasted_ns"` // all blocks
	Free    time.Time         `json:"free"`      // when the block before had its last answer
	Failed  string            `json:"failed"`    // metric; "": none
	Skipped map[Skip]int64    `json:"skipped"`
	Tail    []byte            `json:"tail"`  // counts
	Tests   []TestSnapshot    `json:"tests"` // in the mode verdict, one for each metric
	Watch   []WatchedSnapshot `json:"watch"` // in the mode watch, one for each metric
	Totals  Totals            `json:"totals"`
}

// A TestSnapshot is the evidence about a metric.
type TestSnapshot struct {
	Metric     string     `json:"metric"`
	Above      int64      `json:"above"` // blocks
	At         int64      `json:"at"`
	Below      int64      `json:"below"`
	Passed     bool       `json:"passed"`
	Neighbours neighbours `json:"neighbours"`
	All        Tally      `json:"all"` // requests of a share

	Cells []byte `json:"cells"` // counts of a latency's values by cell of its interval
	Lower int    `json:"lower"` // bounds of the interval, as cells
	Upper int    `json:"upper"`
}

// A WatchedSnapshot is the state of a metric of a watch.
type WatchedSnapshot struct {
	Metric     string     `json:"metric"`
	Direction  Direction  `json:"direction"`
	Since      time.Time  `json:"since"`
	Found      time.Time  `json:"found"`
	Changes    []int64    `json:"changes"` // by direction
	Up         []bettor   `json:"up"`
	Down       []bettor   `json:"down"`
	Back       []bettor   `json:"back"`
	Open       Span       `json:"open"`
	Values     []float64  `json:"values"`  // of a latency's recent blocks, in order
	Tallies    []Tally    `json:"tallies"` // of a share's
	Neighbours neighbours `json:"neighbours"`
}

// Snapshot returns the state without the open block.
func (c *Comparison) Snapshot() Snapshot {
	s := Snapshot{
		Options: c.options, Pairs: c.block.without(c.pairs), Blocks: c.ended, Lasted: c.lasted, Free: c.free, Skipped: maps.Clone(c.skipped),
		Tail: packed(c.tail.counts[:]), Totals: c.totals.clone(),
	}
	s.Totals.Pairs = c.block.without(c.totals.Pairs)
	if c.failed >= 0 {
		s.Failed = c.failed.String()
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

// without returns the pairs that are not in the block.
func (b *block) without(all Pairs) Pairs {
	return Pairs{all.Judged - int64(b.judged()), all.Void - int64(b.void)}
}

func (t *test) snapshot() TestSnapshot {
	s := TestSnapshot{
		Metric: t.metric.String(), Above: t.worse.Ones, Below: t.better.Ones, Passed: t.passed, Neighbours: t.neighbours.clone(),
		At: t.ties, All: t.all,
	}
	if t.metric.IsLatency() {
		s.At = t.worse.Bits - s.Above - s.Below
		s.Cells, s.Lower, s.Upper = packed(t.ratio.counts[:]), t.ratio.lowerCell, t.ratio.upperCell
	}
	return s
}

func (w *watched) snapshot() WatchedSnapshot {
	s := WatchedSnapshot{
		Metric: w.metric.String(), Direction: w.direction, Since: w.since, Found: w.found, Changes: slices.Clone(w.changes[:]),
		Up: slices.Clone(w.up.bettors[:]), Down: slices.Clone(w.down.bettors[:]), Back: slices.Clone(w.back.bettors[:]),
		Open: w.open, Neighbours: w.neighbours.clone(),
	}
	for i := range w.recent.blocks {
		place := (w.recent.next - w.recent.blocks + i + recentBlocks) % recentBlocks
		if w.metric.IsLatency() {
			s.Values = append(s.Values, w.recent.values[place])
		} else {
			s.Tallies = append(s.Tallies, w.recent.tallies[place])
		}
	}
	return s
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
		if m <= 0 || count == 0 || count > mostPacked || place >= uint64(len(counts)) {
			return 0, false
		}
		counts[place] = int64(count)
		sum += int64(count)
		place++
		b = b[n+m:]
	}
	return sum, true
}

// mostPacked bounds a count, so that no sum overflows. A tail halves its counts before.
const mostPacked = 1 << 41
