package daemon

import (
	"testing"
	"testing/synctest"
	"time"
)

// A comparison that is taken out of the file and put back goes on counting. Its evidence begins anew.
func TestCountersOfAComparisonThatComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _, conf := twoServers(t, 1)
		without := conf
		without.Comparisons = nil
		w.start(conf, true)
		pass(20 * time.Second)
		before := w.page().Sum("replayd_comparison_pairs_total")
		w.reload(without)
		pass(10 * time.Second)
		w.reload(conf)
		if now := w.page().Sum("replayd_comparison_pairs_total"); now < before {
			t.Errorf("the counter of pairs fell from %v to %v", before, now)
		}
		if n := w.page().Sum("replayd_comparison_epoch_pairs"); n != 0 {
			t.Errorf("the evidence begins with %v pairs", n)
		}
		pass(20 * time.Second)
		now, shown := w.compared(), w.page()
		if got := shown.Sum("replayd_comparison_epoch_pairs", "judged"); got != float64(now.Judgment.Pairs.Judged) || got < 150 {
			t.Errorf("the gauge of judged pairs is %v, want %d", got, now.Judgment.Pairs.Judged)
		}
		if got := shown.Sum("replayd_comparison_epoch_blocks"); got != float64(now.Judgment.Blocks) || got < 5 {
			t.Errorf("the gauge of blocks is %v, want %d", got, now.Judgment.Blocks)
		}
		w.end()
	})
}
