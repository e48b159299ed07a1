// Canary plays rollouts of two simulated servers in virtual time. It counts how often the program's own comparison
// convicts a server that is equal, and how soon one that is slower.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"replayd/internal/schedule"
	"replayd/internal/sim"
	"replayd/internal/trace"
)

// options are the flags.
type options struct {
	table        string
	rollouts     int
	long         time.Duration
	shares       []string
	conversation string
	nth          int
	only         string
	effects      string
	jitter       float64
	months       int
}

func main() {
	var o options
	flag.StringVar(&o.table, "table", "verdicts", "verdicts (how soon) or watch")
	flag.IntVar(&o.rollouts, "rollouts", 60, "for each line")
	hours := flag.Float64("hours", 24, "of a rollout")
	shares := flag.String("busy", "0.3,0.5,0.7,0.8,0.9,1", "shares of what the engine carries")
	flag.StringVar(&o.conversation, "conversation", "", "Mooncake's conversation trace")
	flag.IntVar(&o.nth, "nth", 1, "play each n-th row of the traces, on an engine slower by as much")
	flag.StringVar(&o.only, "only", "", "the loads and engines whose name has one of these")
	flag.StringVar(&o.effects, "effects", "equal,prefill 5 % slower,prefill 10 % slower", "on the candidate; all: each that there is")
	flag.Float64Var(&o.jitter, "jitter", 0.1, "of both engines")
	flag.IntVar(&o.months, "months", 1000, "table watch: months of independent blocks")
	flag.Parse()
	o.long, o.shares = time.Duration(*hours*float64(time.Hour)), strings.Split(*shares, ",")
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(o options) error {
	if !slices.Contains([]string{"verdicts", "watch"}, o.table) {
		return fmt.Errorf("-table: want verdicts or watch, got %q", o.table)
	}
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
	named := func(name string) string {
		if o.nth > 1 {
			return fmt.Sprintf("%s/%d", name, o.nth)
		}
		return name
	}
	sources := []source{{named("sample"), sample, schedule.Exact}}
	if o.conversation != "" {
		f, err := trace.Open(ctx, o.conversation, trace.Options{})
		if err != nil {
			return err
		}
		defer f.Close()
		sources = append(sources, source{named("conversation"), f, schedule.Exact}, source{named("conversation"), f, schedule.Spread})
	}
	if o.table == "watch" && o.months > 0 {
		months(o.months)
	}
	for _, s := range sources {
		for _, stepTokens := range []int{0, 2048} {
			name := fmt.Sprintf("%s %s %s", s.name, s.arrival, map[int]string{0: "serial", 2048: "shared"}[stepTokens])
			if !slices.ContainsFunc(strings.Split(o.only, ","), func(part string) bool { return strings.Contains(name, part) }) {
				continue
			}
			l, err := newLoad(s.file, s.arrival, o.long, o.nth)
			if err != nil {
				return err
			}
			for _, share := range o.shares {
				busy, err := strconv.ParseFloat(share, 64)
				if err != nil || busy <= 0 {
					return fmt.Errorf("-busy: want shares above 0, got %q", share)
				}
				engine, err := l.engine(stepTokens, busy)
				if err != nil {
					return err
				}
				engine.Jitter = o.jitter
				if err := l.line(fmt.Sprintf("%s, %.2f", name, busy), engine, &o); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// line plays the rollouts of one load, engine and utilization.
func (l *load) line(name string, engine sim.Options, o *options) error {
	if o.table == "watch" {
		return l.watched(name, engine, o.rollouts)
	}
	names := strings.Split(o.effects, ",")
	if o.effects == "all" {
		names = nil
		for _, e := range effects {
			names = append(names, e.name)
		}
	}
	for _, effect := range names {
		e, ok := effectOf(effect)
		if !ok {
			return fmt.Errorf("-effects: want names of effects, got %q", effect)
		}
		if err := l.verdicts(name, engine, e, o.rollouts); err != nil {
			return err
		}
	}
	return nil
}
