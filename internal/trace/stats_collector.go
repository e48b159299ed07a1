package trace

import (
	"math"
	"slices"
	"time"

	"replayd/internal/stats"
	"replayd/internal/trace/prefix"
)

// statsCollector computes Stats from rows in due order.
type statsCollector struct {
	prompts       Prompts
	input, output stats.Counts
	prefixes      prefix.Tree
	shards        [3][]int64 // tokens of each shard
	curve         curve

	rows        int
	first, last int64
	instants    int
	burst, most int     // rows at the current instant; most rows at one instant
	ticks       []int64 // gaps between distinct instants; only the first maxTicks
	squares     float64 // sum of squared deviations of the gaps between rows from their mean
}

const maxTicks = 1 << 16

func newStatsCollector(blockTokens int) *statsCollector {
	g := &statsCollector{prefixes: prefix.New(blockTokens)}
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
	g.curve.add(r, at-base)
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
	s.Curve = g.curve.curve()
	s.First, s.Span = time.Duration(g.first-base), time.Duration(g.last-base)
	s.Instants, s.Burst = g.instants, g.most
	if len(g.ticks) > 0 {
		s.Tick = time.Duration(stats.Median(g.ticks))
	}
	if length := float64(g.last - g.first); length > 0 {
		gaps := float64(g.rows - 1)
		s.GapCV = math.Sqrt(g.squares/gaps) / (length / gaps)
		s.Rate = float64(g.rows) / (length / 1e9)
	}
}
