// Canary decides how a comparison makes blocks: it plays rollouts of two simulated servers in virtual time and counts how often each method
// convicts a server that is equal, and how soon one that is slower.
package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"replayd/internal/canary"
	"replayd/internal/schedule"
	"replayd/internal/trace"
)

func main() {
	rollouts := flag.Int("rollouts", 60, "for each line")
	hours := flag.Float64("hours", 24, "of a rollout")
	shares := flag.String("busy", "0.3,0.5,0.7,0.8,0.9,1", "shares of what the engine carries")
	conversation := flag.String("conversation", "", "Mooncake's conversation trace")
	only := flag.String("only", "", "the loads and engines whose name has this")
	effectNames := flag.String("effects", "equal,prefill 5 % slower,prefill 10 % slower", "on the candidate")
	jitter := flag.Float64("jitter", 0.1, "of both engines")
	verdicts := flag.Bool("verdicts", false, "ask the program's own comparison, not the methods")
	flag.Parse()
	if *verdicts {
		methods = nil
	}
	if err := run(*rollouts, time.Duration(*hours*float64(time.Hour)), strings.Split(*shares, ","), *conversation, *only, *effectNames, *jitter); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(rollouts int, long time.Duration, shares []string, conversation, only, effectNames string, jitter float64) error {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "canary-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	sample, err := openSample(ctx, dir)
	if err != nil {
		return err
	}
	defer sample.Close()
	type source struct {
		name    string
		file    *trace.File
		arrival schedule.Arrival
	}
	sources := []source{{"sample", sample, schedule.Exact}}
	if conversation != "" {
		f, err := trace.Open(ctx, conversation, trace.Options{})
		if err != nil {
			return err
		}
		defer f.Close()
		sources = append(sources, source{"conversation", f, schedule.Exact}, source{"conversation", f, schedule.Spread})
	}
	for _, s := range sources {
		for _, stepTokens := range []int{0, 2048} {
			name := fmt.Sprintf("%s %s %s", s.name, s.arrival, map[int]string{0: "serial", 2048: "shared"}[stepTokens])
			if !strings.Contains(name, only) {
				continue
			}
			l, err := newLoad(s.file, s.arrival, long)
			if err != nil {
				return err
			}
			for _, share := range shares {
				busy, err := strconv.ParseFloat(share, 64)
				if err != nil || busy <= 0 {
					return fmt.Errorf("-busy: want shares above 0, got %q", share)
				}
				if err := l.line(name, stepTokens, busy, jitter, rollouts, effectNames); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

var tolerances = []float64{0, 0.05}

// line plays the rollouts of one load, engine and utilisation, with all effects.
func (l *load) line(name string, stepTokens int, share, jitter float64, rollouts int, effectNames string) error {
	o, err := l.engine(stepTokens, share)
	if err != nil {
		return err
	}
	o.Jitter = jitter
	for _, e := range effects {
		if !slices.Contains(strings.Split(effectNames, ","), e.name) {
			continue
		}
		found := make([][][][3]finding, rollouts) // by rollout, method, tolerance, metric
		queue := make([]float64, rollouts)
		said := make([]said, rollouts)
		errs := make([]error, rollouts)
		var group sync.WaitGroup
		turns := make(chan struct{}, runtime.GOMAXPROCS(0))
		for r := range rollouts {
			turns <- struct{}{}
			group.Go(func() {
				defer func() { <-turns }()
				b, c, err := l.play(o, e, uint64(r))
				if err != nil {
					errs[r] = err
					return
				}
				if len(methods) == 0 {
					said[r].verdict, said[r].metric, said[r].at = l.verdict(b, c)
					return
				}
				ps := l.pairs(b, c)
				queue[r] = 1 - float64(emptyPairs(ps))/float64(len(ps))
				for _, m := range methods {
					found[r] = append(found[r], m.judge(ps, tolerances))
				}
			})
		}
		group.Wait()
		for _, err := range errs {
			if err != nil {
				return err
			}
		}
		if len(methods) == 0 {
			tell(fmt.Sprintf("%s, %.2f, %s", name, share, e.name), said)
			continue
		}
		slices.Sort(queue)
		fmt.Printf("\n## %s, busy %.2f, %s: %d rollouts, %.0f %% of pairs meet a queue\n", name, share, e.name, rollouts, 100*queue[rollouts/2])
		for m, method := range methods {
			for k, metric := range []string{"ttft", "tpot", "e2e"} {
				fmt.Printf("%-30s %-4s", method.name, metric)
				for t, tolerance := range tolerances {
					convicted := 0
					var after, corr, above, blocks []float64
					for r := range rollouts {
						f := found[r][m][t][k]
						if f.convicted > 0 {
							convicted++
						}
						after = append(after, minutes(f.convicted))
						corr = append(corr, f.correlation)
						above = append(above, f.above)
						blocks = append(blocks, float64(f.blocks))
					}
					if t == 0 {
						fmt.Printf(" blocks %5.0f corr %5.2f", middle(blocks), middle(corr))
					}
					fmt.Printf(" | tol %.2f above %.3f convicted %3d after %5.0f min", tolerance, middle(above), convicted, middle(after))
				}
				fmt.Println()
			}
		}
	}
	return nil
}

// A said is the program's verdict of a rollout.
type said struct {
	verdict canary.Verdict
	metric  canary.Metric
	at      time.Duration
}

// tell prints a line of the table: verdicts, metrics that failed, and the median time to the verdict that came most often.
func tell(name string, all []said) {
	verdicts, metrics, times := map[canary.Verdict]int{}, map[string]int{}, map[canary.Verdict][]float64{}
	for _, s := range all {
		verdicts[s.verdict]++
		times[s.verdict] = append(times[s.verdict], minutes(s.at))
		if s.verdict == canary.Fail {
			metrics[s.metric.String()]++
		}
	}
	at := func(v canary.Verdict) string {
		if len(times[v]) == 0 {
			return "–"
		}
		return fmt.Sprintf("%.0f min", middle(times[v]))
	}
	fmt.Printf("| %s | %d | %d %v | %s | %d | %s | %d |\n", name, len(all), verdicts[canary.Fail], metrics, at(canary.Fail),
		verdicts[canary.Pass], at(canary.Pass), verdicts[canary.Undecided])
}

func minutes(d time.Duration) float64 {
	if d == 0 {
		return math.Inf(1)
	}
	return d.Minutes()
}

func middle(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}
