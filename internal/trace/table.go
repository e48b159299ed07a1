package trace

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// WriteTable writes the figures for people, with their units.
func (s Stats) WriteTable(w io.Writer) error {
	t := table{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
	t.line("trace", s.Path)
	t.line("content", fmt.Sprintf("%s, %s bytes, sha256 %s", s.Format, grouped(s.Bytes), s.SHA256))
	t.line("requests", grouped(int64(s.Requests)))
	t.line("prompts", fmt.Sprintf("%s by length (%s with ids), %s text, %s messages, %s payload", grouped(int64(s.Prompts.Synthesized)),
		grouped(int64(s.RowsWithIDs)), grouped(int64(s.Prompts.Text)), grouped(int64(s.Prompts.Messages)), grouped(int64(s.Prompts.Payload))))
	t.line("sessions", grouped(int64(s.Sessions)))
	s.writeTimes(t)
	for _, b := range s.Balance {
		if b.Largest == 0 { // no row says how long it is
			continue
		}
		t.line(fmt.Sprintf("largest of %d shards", b.Shards), fmt.Sprintf("%.3f of the mean, tokens in and out, row i to shard i mod %d", b.Largest, b.Shards))
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
	rows := "rows"
	if s.Burst == 1 {
		rows = "row"
	}
	t.line("timestamps", fmt.Sprintf("%s, %s to %s, %s distinct, at most %s %s at one", order,
		millis(s.First), millis(s.Span), grouped(int64(s.Instants)), grouped(int64(s.Burst)), rows))
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
	t.line("blocks", fmt.Sprintf("%s of %d tokens; as many ids as blocks on %s of %s rows with ids", grouped(p.Blocks), s.BlockTokens,
		grouped(int64(s.RowsWithIDs-s.SurplusRows)), grouped(int64(s.RowsWithIDs))))
	t.line("ids", fmt.Sprintf("%s distinct; %s behind more than one prefix, %s with more than one length",
		grouped(int64(p.IDs)), grouped(int64(p.Moved)), grouped(int64(p.Resized))))
	t.line("ideal prefix hits", fmt.Sprintf("%s of %s blocks = %.6f", grouped(p.HitBlocks), grouped(p.Blocks), p.HitBlockRatio))
	t.line("", fmt.Sprintf("%s of %s input tokens = %.6f", grouped(p.HitTokens), grouped(s.Input.Sum), p.HitTokenRatio))
	t.line("prefix tree", fmt.Sprintf("%s unique prefixes; roots used more than once: %s", grouped(int64(p.Unique)), grouped(int64(p.SharedRoots))))
	t.line("cache_hit_rate", fmt.Sprintf("%.10f, as AIPerf has it: mean share of a row's ids, from the front, that came before", p.CacheHitRate))
	t.line("prefix_reuse_ratio", fmt.Sprintf("%.10f, as AIPerf has it: occurrences of prefixes that occur more than once, of all", p.ReuseRatio))
}

type table struct{ *tabwriter.Writer }

// line writes cells. Errors stay in the tabwriter, which returns them from Flush.
func (t table) line(cells ...string) {
	_, _ = fmt.Fprintln(t, strings.Join(cells, "\t"))
}

func (t table) distribution(name string, d Distribution) {
	if d.Count == 0 {
		t.line(name, "n/a")
		return
	}
	t.line(name, decimal(d.Mean, 3), decimal(d.P50, 1), decimal(d.P90, 1), decimal(d.P99, 1),
		grouped(int64(d.Min)), grouped(int64(d.Max)), grouped(d.Sum), grouped(d.Count))
}

// millis shows a duration in the unit that trace files have, with the digits that it needs.
func millis(d time.Duration) string {
	return grouped(int64(d/time.Millisecond)) + strings.TrimPrefix(strings.TrimRight(fmt.Sprintf("%.6f", float64(d%time.Millisecond)/1e6), ".0"), "0") + " ms"
}

func decimal(v float64, digits int) string {
	whole, fraction, _ := strings.Cut(strconv.FormatFloat(v, 'f', digits, 64), ".")
	n, _ := strconv.ParseInt(whole, 10, 64) // what FormatFloat has just written; values are token counts
	if digits == 0 {
		return grouped(n)
	}
	return grouped(n) + "." + fraction
}

// grouped writes a number that is not negative with a comma between thousands.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
