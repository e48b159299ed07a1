package export

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"replayd/internal/measure"
	"replayd/internal/result"
	"replayd/test/resulttest"
)

// Every table shows attainment and service attainment.
func TestAttainmentUnderTables(t *testing.T) {
	run := resulttest.Run(t)
	for _, w := range writers {
		if w.name != "table_aiperf.txt" && w.name != "table_vllm.txt" {
			continue
		}
		for _, c := range []struct {
			ledger *measure.Ledger
			want   string
		}{
			{
				&measure.Ledger{Expected: 40, Good: 10, Eligible: 10, Outcomes: map[measure.Outcome]int64{measure.OK: 10}, Dropped: map[measure.DropReason]int64{measure.Overload: 30}},
				"Attainment: 25.00% (10 good of 40 expected, 30 dropped (overload))\nService Attainment: 100% (10 good of 10 eligible)\n",
			},
			{&measure.Ledger{}, "Attainment: N/A (0 good of 0 expected)\nService Attainment: N/A (0 good of 0 eligible)\n"},
			{nil, "Attainment: N/A (what was never sent is not in these files)\n"},
		} {
			run.Ledger = c.ledger
			b := &strings.Builder{}
			if err := w.write(b, run); err != nil || !strings.Contains(b.String(), c.want) {
				t.Errorf("%s: want %q, got %v and\n%s", w.name, c.want, err, b)
			}
		}
	}
}

// Each table, the workbook and the files of figures tell of answers that differ from the API.
func TestReadingIsInEveryOutput(t *testing.T) {
	run := resulttest.Run(t)
	run.Reading = &result.Reading{
		Rules: map[string]int64{"no_output": 3}, Reasons: 1, Reason: "weary", Unread: 2, First: `"mood":"low"`,
	}
	summary := func(w io.Writer, r result.Run) (err error) {
		for line := range summaryLines(r, nil) {
			_, err = fmt.Fprintln(w, line...)
		}
		return err
	}
	runs := func(w io.Writer, r result.Run) error { return WriteRuns(w, []result.Run{r}, nil, nil) }
	for name, c := range map[string]struct {
		write func(io.Writer, result.Run) error
		want  []string
	}{
		"AIPerf's table": {func(w io.Writer, r result.Run) error { return WriteAIPerfTable(w, r, 0) }, nil},
		"vLLM's table":   {WriteVLLMTable, nil},
		"workbook":       {summary, nil},
		"figures": {WriteJSON, []string{
			`"no_output": 3`, `"first_other_finish_reason": "weary"`, `"unread_events": 2`,
		}},
		"runs": {runs, []string{`"no_output": 3`, `"first_other_finish_reason": "weary"`, `"unread_events": 2`}},
	} {
		if c.want == nil {
			c.want = []string{"Usage: no_output in 3 ok", "Finish reason: 1 answer with", "Not understood: 2 parts of answers"}
		}
		b := &strings.Builder{}
		if err := c.write(b, run); err != nil {
			t.Error(err)
		}
		for _, want := range c.want {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%s: want %q in\n%s", name, want, b)
			}
		}
	}
}
