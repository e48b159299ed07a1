package daemon

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/canary"
	"replayd/internal/schedule"
)

// In random lives with reloads, pauses, restarts and dead servers, counters never fall, and every quiet minute has pairs that are judged.
func TestComparisonLives(t *testing.T) {
	lives := 8
	if testing.Short() {
		lives = 2
	}
	if n, err := strconv.Atoi(os.Getenv("COMPARISON_LIVES")); err == nil {
		lives = n
	}
	for seed := range uint64(lives) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 3))
			w, n, conf := twoServers(t, 1)
			conf.Workloads[0].Repeat.Align = []schedule.Align{schedule.WallClock, schedule.Start}[rng.IntN(2)]
			w.start(conf, true)
			before := w.compared().Counters.Totals()
			for range 12 {
				switch rng.IntN(8) {
				case 0:
					w.pause("load", true)
				case 1:
					w.pause("", false)
				case 2:
					w.restart("rollout")
				case 3:
					w.dies(true)
				case 4:
					n.slower(1 + rng.Float64())
				default:
					next := conf
					next.Targets, next.Workloads, next.Comparisons = slices.Clone(conf.Targets), slices.Clone(conf.Workloads), slices.Clone(conf.Comparisons)
					switch rng.IntN(6) {
					case 0:
						next.Comparisons[0].MinPairs = 5 + rng.IntN(10)
					case 1:
						next.Targets[rng.IntN(2)].Timeouts.Total++
					case 2:
						next.Workloads[0].Lanes++
					case 3:
						next.Workloads[0].Repeat.Align = []schedule.Align{schedule.WallClock, schedule.Start}[rng.IntN(2)]
					case 4:
						next.Workloads = append(next.Workloads[:1], beside(conf.Workloads[0]))
					}
					conf = next
					w.reload(conf)
				}
				pass(time.Duration(1+rng.IntN(10_000)) * time.Millisecond)
				w.dies(false)
				now := w.compared().Counters.Totals()
				if now.Pairs.Judged < before.Pairs.Judged || now.Pairs.Void < before.Pairs.Void || now.Metrics[canary.Bad].At < before.Metrics[canary.Bad].At {
					t.Errorf("seed %d: a counter fell: %+v, then %+v", seed, before, now)
				}
				before = now
			}
			w.pause("", false)
			pass(2 * time.Minute) // whatever was open is closed
			from := w.compared().Counters.Totals().Pairs
			pass(time.Minute)
			to := w.compared().Counters.Totals().Pairs
			if to.Void > from.Void || to.Judged < from.Judged+500 {
				t.Errorf("seed %d: in a quiet minute %+v became %+v", seed, from, to)
			}
			w.end()
			if a := w.comparisons.Counters("rollout").Totals().Account; a.Open() != 0 || a.Requests[0].Sent+a.Requests[0].Unsent > a.Due || a.Requests[1].Sent+a.Requests[1].Unsent > a.Due {
				t.Errorf("seed %d: in the end %+v, %d open", seed, a, a.Open())
			}
		})
	}
}
