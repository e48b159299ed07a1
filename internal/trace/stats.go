package trace

import (
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
	Curve         Curve         // requests and tokens over time

	Input, Output stats.CountSummary // tokens, of the rows that have a length
	Balance       [3]Balance

	BlockTokens int // given or detected; else the format's own size or 512
	RowsWithIDs int
	SurplusRows int // of these, rows with more ids than their prompt has blocks; surplus ids are ignored
	Prefix      prefix.Sharing
}

// Prompts counts rows by the source of their prompt.
type Prompts struct{ Synthesized, Text, Messages, Payload int }

// Balance is how evenly a trace's tokens are divided among shards: see Record.Shard.
type Balance struct {
	Shards  int
	Largest float64 // input and output tokens of the largest shard / mean over shards
}
