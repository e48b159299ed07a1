package trace

import (
	"time"

	"replayd/internal/stats"
	"replayd/internal/trace/prefix"
)

// Stats is what a trace holds. Figures that need timestamps are 0 without them, figures of prefixes without ids.
type Stats struct {
	Path   string // as it was given
	Format Format
	SHA256 string // of the decompressed content, hexadecimal
	Bytes  int64  // of the same

	Requests int
	Prompts  Prompts
	Sessions int // distinct session ids
	Warnings []string

	HasTimestamps bool
	Sorted        bool          // the file's order is the due order
	First, Span   time.Duration // offsets of the first and the last row
	Instants      int           // distinct timestamps
	Burst         int           // most rows at one of them
	Tick          time.Duration // median gap between distinct timestamps, of the first 65,536 gaps
	GapCV         float64       // standard deviation of the gaps between rows over their mean; the population's
	Rate          float64       // requests per second, from the first row to the last
	Curve         Curve         // the same over time, and tokens

	Input, Output stats.CountSummary // tokens, of the rows that say
	Balance       [3]Balance

	BlockTokens int // detected or given; 512 where there was nothing to tell it by
	RowsWithIDs int
	SurplusRows int // of these, rows with more ids than their prompt has blocks; the surplus counts nowhere
	Prefix      prefix.Sharing
}

// Prompts counts rows by where their prompt comes from.
type Prompts struct{ Synthesized, Text, Messages, Payload int }

// Balance is how evenly shards share a trace's tokens when row i goes to shard i mod N.
type Balance struct {
	Shards  int
	Largest float64 // tokens, in and out, of the largest shard over the mean
}
