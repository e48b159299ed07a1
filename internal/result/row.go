package result

import (
	"strconv"
	"strings"
	"time"

	"replayd/internal/measure"
)

// A wallClock converts instants to Unix time. It uses the wall clock of the first instant only, so the distances
// between instants are those of the monotonic clock, whatever steps the wall clock makes.
type wallClock struct{ base time.Time }

// ns returns an instant in Unix nanoseconds, or 0 if it did not happen.
func (c *wallClock) ns(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	if c.base.IsZero() {
		c.base = t
	}
	return c.base.UnixNano() + int64(t.Sub(c.base))
}

// correlation returns the name of one conversation of one pass, or of a request alone. Its turns share workload, loop,
// pass and session. id is workload/loop/row, or workload/loop/row.pass if a loop repeats rows.
func correlation(id, session string) string {
	if session == "" {
		return id
	}
	slash := strings.LastIndexByte(id, '/')
	_, pass, again := strings.Cut(id[slash+1:], ".")
	if again {
		session += "." + pass
	}
	return id[:slash+1] + session
}

// A numbering numbers conversations as they come. The zero value begins at 0.
type numbering struct {
	known map[string]int64
	next  int64
}

// of returns the number of a conversation; "" is a request alone. If there are more than most conversations to remember,
// it forgets all of them, and one that goes on gets a new number.
func (n *numbering) of(phase measure.RunPhase, correlation string, most int) int64 {
	key := string(phase) + "/" + correlation
	if number, known := n.known[key]; known {
		return number
	}
	if correlation != "" {
		if n.known == nil || len(n.known) >= most {
			n.known = map[string]int64{}
		}
		n.known[key] = n.next
	}
	n.next++
	return n.next - 1
}

// row returns the Row of a finished request, without its session number.
func (c *wallClock) row(r *measure.Request, processor string, keepGaps bool) Row {
	t, v := &r.Timeline, r.Values()
	row := Row{
		ID: r.ID, Conversation: r.Session, Correlation: correlation(r.ID, r.Session), Turn: r.Turn,
		Worker: "lane_" + strconv.Itoa(r.Lane), Processor: processor,
		Phase: r.Phase, Outcome: r.Outcome, Status: r.Status, Error: string(r.Error), Retried: r.Retried,
		Due: c.ns(t.Due), Credit: c.ns(t.Lane), Start: c.ns(t.Write), Ack: c.ns(t.Head), End: c.ns(t.End), Cancel: c.ns(t.Cancel),
		TTFT: v[measure.TTFT], TTFAT: v[measure.TTFAT], Second: v[measure.SecondToken], Latency: v[measure.E2E], ITL: v[measure.TPOT], Lateness: v[measure.Lateness],
		Reads: len(t.ReadDelays), Merged: t.MergedReads,
		Input: r.Input(), Prompt: r.PromptLength(), Answer: r.AnswerLength(),
	}
	if r.Sent() {
		row.Connect = milliseconds(t.Connect)
	}
	if row.Reads > 0 {
		var sum time.Duration
		for _, d := range t.ReadDelays {
			sum += max(0, d)
		}
		row.ReadDelay = milliseconds(sum) / float64(row.Reads)
	}
	n := len(t.Chunks)
	if n == 0 {
		return row
	}
	if !t.Whole {
		row.First = row.Start + int64(t.Chunks[0])
	}
	if r.Outcome != measure.OK {
		return row
	}
	if most := v[measure.MostTPOT]; most > 0 {
		row.MostTPOT = most
	}
	row.Output, row.Reasoning, row.Opening = r.Usage.Output, r.Usage.Reasoning, r.Usage.Opening
	row.End = row.Start + int64(t.Chunks[n-1])
	if keepGaps && n > 1 {
		row.Gaps = make([]float64, 0, n-1)
		for gap := range r.ITL() {
			row.Gaps = append(row.Gaps, milliseconds(gap))
		}
	}
	return row
}

func milliseconds(d time.Duration) float64 { return float64(d) / 1e6 }
