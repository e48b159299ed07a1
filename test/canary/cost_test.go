//go:build canary

package canary_test

import (
	"fmt"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"replayd/bench/lab"

	"replayd/test/outside"
)

// What a pair costs beside two single requests: CPU time of replayd compare and of replayd run, which sends as many requests per second to one engine, in
// turns. Once run has the same trace at twice the speed, and once two rows at each instant, as compare sends them. This test has the machine for itself.
func TestCostOfAPair(t *testing.T) {
	rounds := outside.Knob(t, "CANARY_ROUNDS", 1, strconv.Atoi)
	slice := outside.Knob(t, "CANARY_SLICE", 4*time.Second, time.ParseDuration)
	const each = 20 * time.Millisecond
	p := newPair(t, 70, nil, "--ttft", ttft().String())
	p.trace = steady(t, p.dir, each, input, output())
	twos := outside.Write(t, p.dir, "twos.jsonl", outside.Trace(bursts(int(2*traceTime/each), 2, each/2, input, output())))
	var of [3][]float64 // CPU µs a request
	for round := range rounds {
		for i, args := range [][]string{
			{"compare", p.trace, "--baseline", p.baseline.url(), "--candidate", p.candidate.url()},
			{"run", p.trace, "--url", p.baseline.url(), "--speed", "2"},
			{"run", twos, "--url", p.baseline.url()},
		} {
			began := time.Now()
			c := outside.Start(t, filepath.Join(p.dir, fmt.Sprint(args[0], i, "-", round, ".out")), binary, args...)
			outside.Until(t, 20*time.Second, func() error {
				if p.baseline.running(t) == 0 {
					return fmt.Errorf("%s sends nothing", args[0])
				}
				return nil
			})
			if !within(c.Done, time.Second) {
				t.Fatalf("%s has ended", args[0])
			}
			from := time.Now()
			before, err := lab.CPU(c.Cmd.Process.Pid)
			if err != nil {
				t.Fatal(err)
			}
			if !within(c.Done, slice) {
				t.Fatalf("%s has ended", args[0])
			}
			to := time.Now()
			after, err := lab.CPU(c.Cmd.Process.Pid)
			if err != nil {
				t.Fatal(err)
			}
			c.Signal(t, syscall.SIGINT)
			c.Wait(t, drain)
			requests := 0
			for _, log := range []string{p.baseline.log, p.candidate.log} {
				for _, candidate := range []bool{false, true} {
					for _, e := range sideRows(t, log, candidate, began) {
						if at := time.Unix(0, e.Arrival); !at.Before(from) && at.Before(to) {
							requests++
						}
					}
				}
			}
			if want := 2 * float64(to.Sub(from)) / float64(each); float64(requests) < 0.95*want {
				t.Fatalf("%s: want %.0f requests, got %d", args[0], want, requests)
			}
			of[i] = append(of[i], float64((after-before).Microseconds())/float64(requests))
		}
	}
	table := &lab.Table{
		Title: fmt.Sprintf("CPU time of a request, µs, at %.0f requests/s of %d tokens in and %d out; medians of %d rounds of %v.", 2/each.Seconds(), input, output(), rounds, slice),
		Head:  []string{"", "median", "least", "most", "compare ÷ it"},
	}
	compare := lab.Median(of[0]...)
	for i, name := range []string{"compare, half of them to each side", "run, the same trace at twice the speed", "run, two rows at each instant"} {
		s := lab.Sample(of[i])
		table.Add(name, lab.Number(s.Quantile(0.5)), lab.Number(s.Quantile(0)), lab.Number(s.Max()), lab.Number(compare/s.Quantile(0.5)))
		if s.Quantile(0) <= 0 {
			t.Errorf("%s: want CPU time in each round, got %v", name, s)
		}
	}
	show(t, table)
}
