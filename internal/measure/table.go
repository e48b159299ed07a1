package measure

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// WriteTable prints the figures for a person: a line for each quantity, in milliseconds, then counts and rates.
func (s *Summary) WriteTable(w io.Writer) error {
	f := s.Figures()
	out := &strings.Builder{}

	row(out, "milliseconds", "count", "mean", "std", "min", "p25", "p50", "p75", "p90", "p99", "max")
	approximate := false
	for _, q := range []struct {
		name string
		Stats
	}{
		{"TTFT", f.TTFT},
		{"TTFT from due", f.TTFTFromDue},
		{"TPOT", f.TPOT},
		{"ITL", f.ITL},
		{"e2e", f.E2E},
		{"e2e from due", f.E2EFromDue},
		{"lateness", f.Lateness},
	} {
		if q.Approximate {
			approximate = true
			q.name += " *"
		}
		row(out, q.name, fmt.Sprint(q.N), q.cells()...)
	}
	if approximate {
		fmt.Fprintf(out, "* percentiles within 0.1 %%: of more than %d values a log histogram is kept; the other columns are exact\n", exactValues)
	}

	fmt.Fprintln(out)
	line(out, "expected", "%d", f.Expected)
	for _, o := range outcomes {
		if n := f.Outcomes[o]; n > 0 {
			line(out, string(o), "%d", n)
		}
	}
	for _, r := range dropReasons {
		switch n := f.Dropped[r]; {
		case n == 0:
		case r == Filtered:
			line(out, "filtered", "%d, not expected", n)
		default:
			line(out, "dropped "+string(r), "%d", n)
		}
	}

	fmt.Fprintln(out)
	rate := func(v float64, defined bool) string {
		if !defined {
			return "-"
		}
		return fmt.Sprintf("%.3f", v)
	}
	spans := f.Span > 0
	line(out, "span", "%.3f s, first due to last answer", f.Span.Seconds())
	line(out, "requests", "%s ok/s", rate(f.RequestRate, spans))
	line(out, "input", "%s tokens/s (%d)", rate(f.InputRate, spans), f.PromptTokens)
	line(out, "output", "%s tokens/s (%d)", rate(f.OutputRate, spans), f.OutputTokens)
	line(out, "output per user", "%s tokens/s", rate(f.UserRate, f.UserRate > 0))
	bound := "no SLO: every ok request"
	if slo := f.SLO.String(); slo != "" {
		bound = "ok and " + slo
	}
	line(out, "goodput", "%s requests/s: %d of %d expected (%s)", rate(f.GoodputRate, spans), f.Goodput, f.Expected, bound)
	_, err := io.WriteString(w, out.String())
	return err
}

// cells are the columns of one quantity after its count; without values they are dashes.
func (s Stats) cells() []string {
	var cells []string
	for _, d := range []time.Duration{s.Mean, s.Std, s.Min, s.P25, s.P50, s.P75, s.P90, s.P99, s.Max} {
		cell := "-"
		if s.N > 0 {
			cell = fmt.Sprintf("%.3f", float64(d)/float64(time.Millisecond))
		}
		cells = append(cells, cell)
	}
	return cells
}

func row(w *strings.Builder, name, count string, cells ...string) {
	fmt.Fprintf(w, "%-15s %9s", name, count)
	for _, c := range cells {
		fmt.Fprintf(w, " %11s", c)
	}
	fmt.Fprintln(w)
}

func line(w *strings.Builder, name, format string, values ...any) {
	fmt.Fprintf(w, "%-26s"+format+"\n", append([]any{name}, values...)...)
}
