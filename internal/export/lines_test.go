package export

import (
	"strings"
	"testing"

	"replayd/internal/measure"
	"replayd/internal/result/resulttest"
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
