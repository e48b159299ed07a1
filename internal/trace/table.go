package trace

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"replayd/internal/number"
	"replayd/internal/stats"
)

// WriteTable writes the figures as a table for people, with units.
func (s Stats) WriteTable(w io.Writer) error {
	t := table{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
	t.line("trace", s.Path)
	t.line("content", fmt.Sprintf("%s, %s bytes, sha256 %s", s.Format, number.Whole(s.Bytes), s.SHA256))
	if s.Columns != "" {
		t.line("columns", s.Columns)
	}
	t.line("requests", number.Whole(s.Requests))
	t.line("prompts", fmt.Sprintf("%s by length (%s with ids), %s text, %s messages, %s payload", number.Whole(s.Prompts.Synthesized),
		number.Whole(s.RowsWithIDs), number.Whole(s.Prompts.Text), number.Whole(s.Prompts.Messages), number.Whole(s.Prompts.Payload)))
	t.line("sessions", number.Whole(s.Sessions))
	if s.Edges > 0 {
		t.line("", fmt.Sprintf("%s; rows name %s", number.Count(s.Agents, "sub-agent"), number.Count(s.Edges, "parent")))
	}
	s.writeTimes(t)
	for _, b := range s.Balance {
		if b.Largest == 0 { // no row has a length
			continue
		}
		by := fmt.Sprintf("row i to shard i mod %d", b.Shards)
		if s.Sessions > 0 {
			by += ", a session to one"
		}
		t.line(fmt.Sprintf("largest of %d shards", b.Shards), fmt.Sprintf("%.3f of the mean, tokens in and out, %s", b.Largest, by))
	}
	s.writePrefix(t)
	t.line("")
	t.line("tokens", "mean", "p50", "p90", "p99", "min", "max", "sum", "rows")
	t.distribution("input", s.Input)
	t.distribution("output", s.Output)
	if len(s.Warnings) > 0 {
		t.line("")
	}
	for _, warning := range s.Warnings {
		t.line("warning: " + warning)
	}
	return t.Flush()
}

func (s Stats) writeTimes(t table) {
	if !s.HasTimestamps {
		t.line("timestamps", "none")
		return
	}
	order := "sorted"
	if !s.Sorted {
		order = "not sorted"
	}
	if s.Edges > 0 {
		order += ", a row behind its parents at the earliest"
	}
	t.line("timestamps", fmt.Sprintf("%s, %s to %s, %s distinct, at most %s at one", order,
		millis(s.First), millis(s.Span), number.Whole(s.Instants), number.Count(s.Burst, "row")))
	t.line("typical tick", fmt.Sprintf("%s, the median gap between distinct timestamps", millis(s.Tick)))
	t.line("request rate", fmt.Sprintf("%.5f /s", s.Rate))
	t.line("gaps between rows", fmt.Sprintf("coefficient of variation %.4f", s.GapCV))
}

func (s Stats) writePrefix(t table) {
	p := s.Prefix
	if s.RowsWithIDs == 0 {
		t.line("ids", "none")
		return
	}
	t.line("blocks", fmt.Sprintf("%s of %d tokens; as many ids as blocks on %s of %s rows with ids", number.Whole(p.Blocks), s.BlockTokens,
		number.Whole(s.RowsWithIDs-s.SurplusRows-s.ShortRows), number.Whole(s.RowsWithIDs)))
	t.line("ids", fmt.Sprintf("%s distinct; %s behind more than one prefix, %s with more than one length",
		number.Whole(p.IDs), number.Whole(p.Moved), number.Whole(p.Resized)))
	t.line("ideal prefix hits", fmt.Sprintf("%s of %s blocks = %.6f", number.Whole(p.HitBlocks), number.Whole(p.Blocks), p.HitBlockRatio))
	t.line("", fmt.Sprintf("%s of %s input tokens = %.6f", number.Whole(p.HitTokens), number.Whole(s.Input.Sum), p.HitTokenRatio))
	t.line("prefix tree", fmt.Sprintf("%s unique prefixes; roots used more than once: %s", number.Whole(p.Unique), number.Whole(p.SharedRoots)))
	t.line("cache_hit_rate", fmt.Sprintf("%.10f, as AIPerf has it: mean share of a row's ids, from the front, that came before", p.CacheHitRate))
	t.line("prefix_reuse_ratio", fmt.Sprintf("%.10f, as AIPerf has it: occurrences of prefixes that occur more than once, of all", p.ReuseRatio))
}

type table struct{ *tabwriter.Writer }

// line writes one line of cells. A write error stays in the tabwriter, which returns it from Flush.
func (t table) line(cells ...string) {
	_, _ = fmt.Fprintln(t, strings.Join(cells, "\t"))
}

func (t table) distribution(name string, d stats.Summary) {
	if d.Count == 0 {
		t.line(name, "n/a")
		return
	}
	t.line(name, number.Cell(d.Mean), number.Cell(d.P50), number.Cell(d.P90), number.Cell(d.P99),
		number.Whole(d.Min), number.Whole(d.Max), number.Whole(d.Sum), number.Whole(d.Count))
}

// millis formats a duration in milliseconds, the unit of trace files, with as many digits as it needs.
func millis(d time.Duration) string {
	return number.Whole(d/time.Millisecond) + strings.TrimPrefix(strings.TrimRight(fmt.Sprintf("%.6f", float64(d%time.Millisecond)/1e6), ".0"), "0") + " ms"
}
