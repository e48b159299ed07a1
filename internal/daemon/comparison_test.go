package daemon

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/canary"
	"replayd/internal/comparison"
	"replayd/internal/config"
	"replayd/internal/schedule"
)

// noise gives each request of a server its own speed, and those of the candidate a factor.
type noise struct {
	mu     sync.Mutex
	rng    *rand.Rand
	factor float64
}

func (n *noise) token(r *http.Request) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	d := 10 * time.Millisecond * time.Duration(900+n.rng.IntN(200)) / 1000
	if r.Host == "candidate" {
		d = time.Duration(float64(d) * n.factor)
	}
	return d
}

func (n *noise) slower(factor float64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.factor = factor
}

// twoServers returns a world with a baseline and a candidate, and a configuration that compares them: 10 pairs/s, blocks of 2 s.
func twoServers(t *testing.T, factor float64) (*world, *noise, config.Config) {
	w := newWorld(t, t.TempDir(), "m")
	n := &noise{rng: rand.New(rand.NewPCG(1, 2)), factor: factor}
	w.token = n.token
	base, cand := target("stable", "http://baseline"), target("canary", "http://candidate")
	base.Metrics.Interval, cand.Metrics.Interval = 0, 0
	load := looped("load", "stable", w.put(paced(20, 100)))
	load.Repeat.Every = 2 * time.Second
	c := conf([]config.Target{base, cand}, load)
	one := config.DefaultComparison()
	one.Name, one.Workload, one.Candidate = "rollout", "load", "canary"
	one.MinPairs, one.MinTime = 10, 2*time.Second
	one.ToleranceTail, one.ToleranceQueued, one.ToleranceBad = 0.2, 0.3, 0.05 // of so few requests, little is known
	c.Comparisons = []config.Comparison{one}
	return w, n, c
}

func (w *world) compared() comparison.Status {
	w.t.Helper()
	all := w.comparisons.Now()
	if len(all) != 1 {
		w.t.Fatalf("got %d comparisons, want 1", len(all))
	}
	return all[0]
}

// beside returns a workload of its own with the rows of another one.
func beside(w config.Workload) config.Workload {
	w.Name = "other"
	return w
}

func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// A slower candidate fails and an equal one passes. The page, /-/comparisons and the judgment say the same.
func TestComparisonOfADaemon(t *testing.T) {
	for _, c := range []struct {
		factor  float64
		verdict canary.Verdict
	}{{1.2, canary.Fail}, {1, canary.Pass}} {
		t.Run(string(c.verdict), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, _, conf := twoServers(t, c.factor)
				w.start(conf, true)
				pass(2 * time.Minute)
				state := w.compared()
				j := state.Judgment
				if j.Verdict != c.verdict || j.Pairs.Judged < 1000 || j.Pairs.Void > 1 {
					t.Errorf("got %s of %v with %+v, want %s", j.Verdict, j.Metric, j.Pairs, c.verdict)
				}
				page := w.page()
				for _, c := range []struct {
					name   string
					labels []string
					want   float64
				}{
					{"replayd_comparison_verdict", []string{"rollout", string(c.verdict)}, 1},
					{"replayd_comparison_verdict", nil, 1},
					{"replayd_comparison_pairs_total", []string{"judged"}, float64(j.Pairs.Judged)},
					{"replayd_comparison_evidence_log10", []string{"ttft", "worse"}, j.Metrics[canary.TTFT].WorseLog10},
					{"replayd_comparison_ratio", []string{"e2e", "estimate"}, j.Metrics[canary.E2E].Ratio},
					{"replayd_comparison_blocks_total", []string{"tpot", "above"}, float64(j.Metrics[canary.TPOT].Worse)},
					{"replayd_comparison_pairs_due_total", nil, float64(j.Account.Due)},
					{"replayd_comparison_pairs_void_total", nil, float64(j.Account.Pairs.Void)},
					{"replayd_comparison_pairs_bad_total", []string{"candidate"}, float64(j.Account.Pairs.Bad[canary.Candidate])},
					{"replayd_comparison_requests_total", []string{"baseline", "sent"}, float64(j.Account.Requests[canary.Baseline].Sent)},
					{"replayd_comparison_requests_total", []string{"not_sent"}, 0},
					{"replayd_comparison_info", []string{"load", "stable", "canary", "verdict"}, 1},
				} {
					if got := page.Sum(c.name, c.labels...); got != c.want {
						t.Errorf("%s of %v is %v, want %v", c.name, c.labels, got, c.want)
					}
				}
				text, err := comparison.JSON([]comparison.Status{state})
				if err != nil {
					t.Fatal(err)
				}
				var shown []struct {
					Verdict, Text string
					Pairs         struct{ Judged int64 }
					Account       struct {
						Due, Judged, Void, Open int64
						Requests                map[string]struct{ Sent int64 }
					}
					Metrics []any
				}
				if err := json.Unmarshal(text, &shown); err != nil {
					t.Fatal(err)
				}
				if s := shown[0]; s.Verdict != string(c.verdict) || s.Pairs.Judged != j.Pairs.Judged || s.Text != j.Text(state.Options) ||
					s.Account.Due != j.Account.Due || s.Account.Judged+s.Account.Void+s.Account.Open != j.Account.Due || s.Account.Requests["candidate"].Sent < 1000 || len(s.Metrics) < 4 {
					t.Errorf("/-/comparisons has %s", text)
				}
				w.end()
			})
		})
	}
}

// What changes neither side keeps the evidence over a reload. What changes a side lets both begin anew at one instant, and no pair is void.
func TestComparisonOverReloads(t *testing.T) {
	for name, c := range map[string]struct {
		change func(c *config.Config)
		keeps  bool
	}{
		"another workload": {func(c *config.Config) { c.Workloads = append(c.Workloads, beside(c.Workloads[0])) }, true},
		"the drain":        {func(c *config.Config) { c.Drain++ }, true},
		"a tolerance":      {func(c *config.Config) { c.Comparisons[0].Tolerance = 0.1 }, false},
		"the candidate":    {func(c *config.Config) { c.Targets[1].Timeouts.Total++ }, false},
		"the baseline":     {func(c *config.Config) { c.Targets[0].Timeouts.Total++ }, false},
		"the workload":     {func(c *config.Config) { c.Workloads[0].Lanes++ }, false},
		"sides":            {func(c *config.Config) { c.Workloads[0].Target, c.Comparisons[0].Candidate = "canary", "stable" }, false},
	} {
		aligns := []string{"wall_clock", "start"}
		if testing.Short() {
			aligns = aligns[:1]
		}
		for _, align := range aligns {
			t.Run(name+" "+align, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w, _, conf := twoServers(t, 1)
					conf.Workloads[0].Repeat.Align = schedule.Align(align)
					w.start(conf, true)
					pass(20 * time.Second)
					before := w.compared()
					counted := before.Counters.Totals().Pairs.Judged
					next := conf
					next.Targets, next.Workloads, next.Comparisons = slices.Clone(conf.Targets), slices.Clone(conf.Workloads), slices.Clone(conf.Comparisons)
					c.change(&next)
					w.reload(next)
					pass(20 * time.Second)
					after := w.compared()
					kept := after.Epoch.Equal(before.Epoch)
					pairs := after.Judgment.Pairs
					if kept != c.keeps || pairs.Void > 1 { // one side can begin in time for a row, and the other not
						t.Errorf("kept: %t, want %t; %+v", kept, c.keeps, pairs)
					}
					if least := map[bool]int64{true: before.Judgment.Pairs.Judged + 150, false: 150}[c.keeps]; pairs.Judged < least {
						t.Errorf("%d pairs, want at least %d", pairs.Judged, least)
					}
					if now := after.Counters.Totals().Pairs.Judged; now < counted+150 {
						t.Errorf("the counter of pairs went from %d to %d", counted, now)
					}
					w.end()
				})
			})
		}
	}
}

// A comparison that is taken out of the file leaves its workload playing, and its candidate not.
func TestComparisonComesAndGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _, conf := twoServers(t, 1)
		without := conf
		without.Comparisons = nil
		w.start(without, true)
		pass(10 * time.Second)
		w.reload(conf)
		pass(20 * time.Second)
		if p := w.compared().Judgment.Pairs; p.Judged < 150 || p.Void > 1 {
			t.Errorf("after it came: %+v", p)
		}
		w.reload(without)
		pass(10 * time.Second)
		if n := len(w.comparisons.Now()); n != 0 {
			t.Errorf("%d comparisons are left", n)
		}
		if got := w.page().Sum("replayd_workload_up"); got != 1 {
			t.Errorf("%v workloads play, want 1", got)
		}
		w.end()
	})
}

// A pause of a workload pauses its candidate, and makes pairs void, not bad. So does a pause of the candidate.
func TestComparisonPaused(t *testing.T) {
	for _, name := range []string{"load", "load@canary", ""} {
		synctest.Test(t, func(t *testing.T) {
			w, _, conf := twoServers(t, 1)
			w.start(conf, true)
			pass(20 * time.Second)
			if changed, known, err := w.g.Pause(name, true); !known || len(changed) != 2 || err != nil {
				t.Errorf("a pause of %q paused %v", name, changed)
			}
			pass(20 * time.Second)
			w.pause(name, false)
			pass(20 * time.Second)
			j := w.compared().Judgment
			if bad := j.Metrics[canary.Bad]; j.Pairs.Void < 190 || j.Pairs.Judged < 350 || bad.Worse+bad.Better > 0 {
				t.Errorf("%q: %+v, bad %+v", name, j.Pairs, bad)
			}
			w.end()
		})
	}
}

// A shard compares its own rows: the pairs of two shards are those of one process.
func TestComparisonOfShards(t *testing.T) {
	pairs := func(t *testing.T, shard schedule.Shard) (n int64) {
		synctest.Test(t, func(t *testing.T) {
			w, _, conf := twoServers(t, 1)
			conf.Workloads[0].Shard = shard
			conf.Workloads[0].Repeat.Align = "start"
			w.start(conf, true)
			pass(60 * time.Second)
			p := w.compared().Judgment.Pairs
			if p.Void > 0 {
				t.Errorf("shard %+v: %+v", shard, p)
			}
			n = p.Judged
			w.end()
		})
		return n
	}
	first, second := pairs(t, schedule.Shard{Index: 0, Of: 2}), pairs(t, schedule.Shard{Index: 1, Of: 2})
	if whole := pairs(t, schedule.Shard{Of: 1}); first < 200 || second < 200 || first+second < whole-2 || first+second > whole+2 {
		t.Errorf("the shards have %d and %d pairs, one process has %d", first, second, whole)
	}
}

// Pairs whose requests end within the drain count. Those that it cuts are void, not bad.
func TestComparisonDrains(t *testing.T) {
	for drain, cut := range map[time.Duration]bool{time.Minute: false, time.Second: true} {
		synctest.Test(t, func(t *testing.T) {
			w, n, conf := twoServers(t, 1)
			w.token = func(r *http.Request) time.Duration { return 100 * n.token(r) }
			conf.Drain = drain
			conf.Workloads[0].Repeat.Align = "start"
			w.start(conf, true)
			pass(20 * time.Second)
			before := w.compared().Judgment
			w.end()               // 3 s of requests are in flight
			pass(5 * time.Second) // the server's ends of those that were cut
			after := w.compared().Judgment
			judged, void := after.Pairs.Judged-before.Pairs.Judged, after.Pairs.Void-before.Pairs.Void
			if judged < 10 || cut != (void > 0) || after.Metrics[canary.Bad].Worse > 0 {
				t.Errorf("drain %v: %d more pairs, %d void, bad %+v", drain, judged, void, after.Metrics[canary.Bad])
			}
		})
	}
}

// Another model begins a new epoch. So does a request.
func TestComparisonBeginsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _, conf := twoServers(t, 1)
		w.start(conf, true)
		pass(30 * time.Second)
		first := w.compared()
		for name, want := range map[string]bool{"rollout": true, "other": false} {
			if _, err := w.g.RestartComparison(name, ""); (err == nil) != want {
				t.Errorf("restart of %s: %v", name, err)
			}
		}
		pass(30 * time.Second)
		second := w.compared()
		if !second.Epoch.After(first.Epoch) || second.Judgment.Pairs.Judged > first.Judgment.Pairs.Judged+20 {
			t.Errorf("after a restart: epoch %v, then %v; %+v", first.Epoch, second.Epoch, second.Judgment.Pairs)
		}
		w.dies(true)
		pass(10 * time.Second)
		w.lists("n")
		w.dies(false)
		pass(30 * time.Second)
		third := w.compared()
		if !third.Epoch.After(second.Epoch) || w.logged("serves another model") != 1 && w.logged("serves another model") != 2 {
			t.Errorf("after another model: epoch %v, then %v", second.Epoch, third.Epoch)
		}
		w.end()
	})
}

// A candidate that is down is bad. A baseline that is down is no fail of the candidate.
func TestComparisonOfADeadServer(t *testing.T) {
	for host, want := range map[string]canary.Verdict{"candidate": canary.Fail, "baseline": canary.Undecided} {
		synctest.Test(t, func(t *testing.T) {
			w, n, conf := twoServers(t, 1)
			w.token = func(r *http.Request) time.Duration {
				if r.Host == host {
					<-r.Context().Done()
				}
				return n.token(r)
			}
			conf.Targets[0].Timeouts.FirstToken, conf.Targets[1].Timeouts.FirstToken = time.Second, time.Second
			w.start(conf, true)
			pass(3 * time.Minute)
			j := w.compared().Judgment
			if j.Verdict != want || want == canary.Fail && j.Metric != canary.Bad {
				t.Errorf("%s is down: got %s of %v, want %s; %+v", host, j.Verdict, j.Metric, want, j)
			}
			w.end()
		})
	}
}
