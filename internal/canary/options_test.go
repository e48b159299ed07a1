package canary

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestOptions(t *testing.T) {
	if err := Defaults().Check(); err != nil {
		t.Error(err)
	}
	want := `mode: want verdict or watch, got "wach" (did you mean watch?)
tolerance: want a number from 0 to 10, got NaN
alpha: want a number from 1e-09 to 0.5, got 1
min_pairs: want an integer from 1 to 4096, got 0
min_time: want 0 to 24h, got -1s
require: want pair or pods, got ""
tolerance_tail: want a number from 0 to 1, got -1
tolerance_queued: want a number from 0 to 1, got 2
tolerance_bad: want a number from 0 to 1, got +Inf`
	err := Options{Mode: "wach", Tolerance: math.NaN(), Alpha: 1, MinTime: -time.Second, ToleranceTail: -1, ToleranceQueued: 2, ToleranceBad: math.Inf(1)}.Check()
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	watched := Defaults()
	watched.Mode, watched.Require = ModeWatch, ScopePods
	if err := watched.Check(); err == nil || !strings.HasPrefix(err.Error(), "require: want pair with the mode watch") {
		t.Errorf("a watch about pods: %v", err)
	}
}
