package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/common/version"
	"github.com/spf13/cobra"

	"replayd/internal/canary"
	"replayd/internal/cli"
	"replayd/internal/comparison"
	"replayd/internal/config"
	"replayd/internal/daemon"
	"replayd/internal/measure"
	"replayd/internal/terminal"
)

const exitUndecided = 4 // compare: there is no verdict when the time is over

type compareCommand struct{ *cli.Compare }

func newCompare(w *world) *cobra.Command {
	o := compareCommand{cli.NewCompare()}
	c := &cobra.Command{
		Use: "compare TRACE --baseline URL --candidate URL", Short: "Say whether one server is worse than another",
		Long: `Say whether one server is worse than another: send each row of a trace to both
at the same instant, until there is a verdict or the time is over.

The trace is played again and again. A fail is wrong in at most --alpha of such
comparisons, and so is a pass, however long it takes, if the ratio of two equal
servers wanders by --wander at most. --aa measures that between two equal ones.
The engines' pages of metrics are read: where other clients load one side more,
the verdict says so.

Exit codes:
  0  pass
  1  failed to run
  2  wrong usage or input file
  3  fail: the candidate is worse
  4  undecided: there was no verdict in time
  130  cut short by SIGINT; 143 by SIGTERM, 129 by SIGHUP`,
		Example: `  replayd compare trace.jsonl --baseline a:80 --candidate b:80 --tolerance 10%
  replayd compare trace.jsonl --baseline a:80 --candidate b:80 --html page.html`,
		Args: usage(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error { return o.run(c, w, args[0]) },
	}
	o.Table().Add(c)
	return c
}

// errDecided ends a comparison that has its verdict.
var errDecided = errors.New("there is a verdict")

// workloadFailed ends a comparison of which a side cannot go on.
type workloadFailed struct{ error }

func (o *compareCommand) run(c *cobra.Command, w *world, trace string) error {
	if !c.Flags().Changed("api") {
		o.Baseline.FollowAddress()
	}
	cfg, err := o.Config(trace)
	if err != nil {
		return wrongInput(err)
	}
	page := comparePage{path: o.HTML, begin: time.Now()}
	if err := page.check(); err != nil {
		return wrongInput(err)
	}
	ctx, stop := context.WithCancelCause(c.Context())
	defer stop(nil)
	var last canary.Judgment
	open := func() bool { return o.AA || last.Verdict != canary.Pass && last.Verdict != canary.Fail }
	var mu sync.Mutex // guards last and page: a comparison that is stuck when Run returns may go on
	over := false
	while := func(f func()) { // the first verdict stands; requests may still be in flight
		mu.Lock()
		defer mu.Unlock()
		if open() && !over {
			f()
		}
	}
	shown := terminal.NewComparing(w.screen(), w.log, o.Options, o.Longest)
	options := daemon.Options{
		Config: cfg, UserAgent: "replayd/" + version.Version, Log: w.log,
		Failed: func(err error) { stop(&workloadFailed{err}) },
		Listeners: comparison.Listeners{Judged: func(j canary.Judgment) {
			while(func() {
				if last = j; open() {
					shown.Judged(&j)
				} else {
					stop(errDecided)
				}
			})
		}},
	}
	if o.HTML != "" || o.AA {
		options.Block = func(b canary.Block) { while(func() { page.add(b, o.AA) }) }
		options.Pair = func(p *canary.Pair) { while(func() { page.history.Pair(p) }) }
	}
	once := daemon.Once{
		Options: options, Version: version.Version, LogDropped: w.dropped,
		Started: func(g *daemon.Generation) {
			page.played = g.Played
			time.AfterFunc(o.Longest, func() { stop(context.DeadlineExceeded) })
		},
		Ended: func(measure.Ledger, error) {},
	}
	w.drains(cfg)
	err = once.Run(ctx, hardStop(c.Context()))
	mu.Lock()
	defer mu.Unlock()
	over = true
	shown.End()
	if bad := (*config.Invalid)(nil); errors.As(err, &bad) {
		return wrongInput(o.ByFlag(bad.Faults))
	}
	if failed := (*workloadFailed)(nil); errors.As(context.Cause(ctx), &failed) {
		err = errors.Join(failed.error, err)
	}
	if _, left := errors.AsType[*daemon.LeftError](err); err != nil && !left {
		return err
	}
	if o.AA {
		if s := stopped(c.Context()); s != nil {
			err = s
		}
		return errors.Join(page.write(&last, o.Compare, &cfg), o.printWander(w, &page, &last, err))
	}
	fmt.Fprint(w.out, terminal.Comparison(&last, o.Options, w.columns))
	if err := page.write(&last, o.Compare, &cfg); err != nil {
		return err
	}
	switch s := stopped(c.Context()); {
	case last.Verdict == canary.Fail:
		return &exitError{exitMissed, errors.Join(errors.New("the candidate is worse than the baseline"), err)}
	case last.Verdict == canary.Pass:
		return err // nil, unless something is stuck
	case s != nil:
		return &exitError{s.code(), errors.Join(fmt.Errorf("%w before there was a verdict", s), err)}
	case err != nil:
		return err
	}
	return &exitError{exitUndecided, fmt.Errorf("no verdict in %v", o.Longest)}
}
