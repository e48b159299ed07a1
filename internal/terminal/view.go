package terminal

import (
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"replayd/internal/measure"
)

// A view is the displayed state of a run at one instant.
type view struct {
	Outlook
	observed
	elapsed time.Duration
	ended   bool
}

func (v view) done() int { return int(v.Ledger.Finished() + v.Ledger.Unsent()) }

func (v view) cancelled() int64 { return v.Ledger.Outcomes[measure.Cancelled] }

// share returns the part that is done, 0 to 1, by requests or
// else by the plan's time. It returns false if neither is known.
func (v view) share() (float64, bool) {
	switch {
	case v.Requests > 0:
		return min(1, float64(v.done())/float64(v.Requests)), true
	case v.Length > 0:
		return float64(v.Length-min(v.Left, v.Length)) / float64(v.Length), true
	}
	return 0, false
}

// left returns the time left: by the plan, which knows when its last row is due, or else by the rate of the last
// seconds. It returns "" if neither is known.
func (v view) left() string {
	rest := v.Requests - v.done()
	switch {
	case v.ended:
		return ""
	case v.Stopping:
		return "stopping"
	case v.Length > 0 && v.Left <= 0:
		return "last answers"
	case v.Left > v.Length:
		return "begins in " + seconds(v.Left-v.Length)
	case v.Length > 0:
		return "ETA " + seconds(v.Left)
	case rest > 0 && v.rate() > 0:
		return "ETA " + seconds(time.Duration(float64(rest)/v.rate()*float64(time.Second)))
	}
	return ""
}

func (v view) attributes() []any {
	a := []any{"done", v.done()}
	if v.Requests > 0 {
		a = append(a, "of", v.Requests)
	}
	a = append(a, "ok", v.Ledger.Outcomes[measure.OK], "failed", v.Ledger.Failed(), "dropped", v.Ledger.Unsent())
	if v.cancelled() > 0 {
		a = append(a, "cancelled", v.cancelled())
	}
	a = append(a, "in_flight", v.Ledger.InFlight, "per_second", fmt.Sprintf("%.1f", v.rate()))
	if len(v.ttft) > 0 {
		a = append(a, "ttft_p50", v.ttft.percentile(50), "ttft_p99", v.ttft.percentile(99))
	}
	if left, known := strings.CutPrefix(v.left(), "ETA "); known {
		a = append(a, "left", left)
	}
	if v.lastErr != "" {
		a = append(a, "last_error", v.lastErr)
	}
	return a
}

func seconds(d time.Duration) string { return model.Duration(max(0, d).Round(time.Second)).String() }
