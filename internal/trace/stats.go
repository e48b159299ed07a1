package trace

import (
	"math"
	"slices"
	"time"

	"replayd/internal/stats"
	"replayd/internal/trace/prefix"
)

// Stats describes a trace. Figures that need timestamps are 0 without timestamps; prefix figures are 0 without ids.
type Stats struct {
	Path   string // as given
	Format Format
	SHA256 string // of the decompressed content, hexadecimal
	Bytes  int64  // of the decompressed content

	Columns string // how the columns of a table were read, as ParseColumns reads it; "": the file is no table

	Requests int
	Prompts  Prompts
	Sessions int // distinct session ids
	Agents   int // sub-agents of sessions
	Edges    int // how often a row names a row that it waits for
	Warnings []string

	HasTimestamps bool
	Sorted        bool          // the file's order is the due order
	First, Span   time.Duration // offsets of the first and the last row
	Instants      int           // distinct timestamps
	Burst         int           // most rows at one timestamp
	Tick          time.Duration // median gap between distinct timestamps, of the first 65,536 gaps
	GapCV         float64       // coefficient of variation of the gaps between rows: population std deviation / mean
	Rate          float64       // requests per second, from the first row to the last
	Gaps          []Gap         // the first 65,536 longer than Options.Gap
	Curve         Curve         // requests and tokens over time

	Input, Output stats.Summary // tokens, of the rows that have a length
	Balance       [3]Balance

	BlockTokens int // given or detected; else the format's own size or 512
	RowsWithIDs int
	SurplusRows int // of these, rows with more ids than their prompt has blocks; surplus ids are ignored
	ShortRows   int // of these, rows with fewer; what has no id is text of the row's own
	Prefix      prefix.Sharing
}

// Prompts counts rows by the source of their prompt.
type Prompts struct{ Synthesized, Text, Messages, Payload int }

// A Gap is the time from an instant with rows to the next one, in offsets.
type Gap struct {
	From, To time.Duration
	Rows     int // at From
}

// Balance is how evenly a trace's tokens are divided among shards: see Record.Shard.
type Balance struct {
	Shards  int
	Largest float64 // input and output tokens of the largest shard / mean over shards
}

type statsCollector struct {
	prompts       Prompts
	input, output stats.Counts
	prefixes      prefix.Tree
	shards        [3][]int64 // tokens of each shard
	curve         Curve

	rows        int
	first, last int64
	instants    int
	burst, most int     // rows at the current instant; most rows at one instant
	ticks       []int64 // gaps between distinct instants; only the first maxTicks
	squares     float64 // sum of squared deviations of the gaps between rows from their mean
	least       int64   // gaps between instants that are longer are kept; 0: none
	gaps        []Gap   // by the file's own clock; only the first maxTicks
}

const maxTicks = 1 << 16

func newStatsCollector(blockTokens int, gap time.Duration) *statsCollector {
	g := &statsCollector{prefixes: prefix.New(blockTokens), least: int64(gap)}
	for i := range g.shards {
		g.shards[i] = make([]int64, 2<<i)
	}
	return g
}

// add counts a row. at is the row's instant on the file's own clock, and base is the clock's time at offset 0.
func (g *statsCollector) add(r *Record, at, base int64) {
	switch {
	case r.Text != "":
		g.prompts.Text++
	case r.Messages != nil:
		g.prompts.Messages++
	case r.Payload != nil:
		g.prompts.Payload++
	default:
		g.prompts.Synthesized++
		g.input.Add(r.InputTokens)
		g.prefixes.Add(r.Blocks, r.InputTokens)
	}
	if r.OutputTokens > 0 {
		g.output.Add(r.OutputTokens)
	}
	for _, shards := range g.shards {
		shards[r.Shard(len(shards))] += int64(r.InputTokens + r.OutputTokens)
	}
	g.curve.add(r, time.Duration(at-base))
	g.time(at)
}

func (g *statsCollector) time(at int64) {
	g.rows++
	if g.rows == 1 {
		g.first, g.last = at, at
		g.instants, g.burst, g.most = 1, 1, 1
		return
	}
	gap := at - g.last
	if g.least > 0 && gap > g.least && len(g.gaps) < maxTicks {
		g.gaps = append(g.gaps, Gap{time.Duration(g.last), time.Duration(at), g.burst})
	}
	if gap > 0 {
		g.instants++
		g.burst = 0
		if len(g.ticks) < maxTicks {
			g.ticks = append(g.ticks, gap)
		}
	}
	g.burst++
	g.most = max(g.most, g.burst)

	// Welford's algorithm keeps its precision for many similar gaps. The mean of n gaps follows from the first and the
	// last instant.
	n := float64(g.rows - 1)
	mean := float64(at-g.first) / n
	if n > 1 {
		before := float64(g.last-g.first) / (n - 1)
		g.squares += (float64(gap) - before) * (float64(gap) - mean)
	}
	g.last = at
}

// fill completes Stats. base is the instant of offset 0.
func (g *statsCollector) fill(s *Stats, base int64) {
	s.Prompts = g.prompts
	s.Input, s.Output = g.input.Summary(), g.output.Summary()
	s.RowsWithIDs = g.prefixes.Rows
	s.Prefix = g.prefixes.Stats(s.Input.Sum)
	for i, shards := range g.shards {
		s.Balance[i].Shards = len(shards)
		if total := s.Input.Sum + s.Output.Sum; total > 0 {
			s.Balance[i].Largest = float64(slices.Max(shards)) * float64(len(shards)) / float64(total)
		}
	}
	if !s.HasTimestamps {
		return
	}
	s.Curve, s.Gaps = g.curve, g.gaps
	for i := range s.Gaps {
		s.Gaps[i].From -= time.Duration(base)
		s.Gaps[i].To -= time.Duration(base)
	}
	s.First, s.Span = time.Duration(g.first-base), time.Duration(g.last-base)
	s.Instants, s.Burst = g.instants, g.most
	if len(g.ticks) > 0 {
		s.Tick = time.Duration(stats.PercentileOf(50, g.ticks))
	}
	if length := float64(g.last - g.first); length > 0 {
		gaps := float64(g.rows - 1)
		s.GapCV = math.Sqrt(g.squares/gaps) / (length / gaps)
		s.Rate = float64(g.rows) / (length / 1e9)
	}
}
