package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/common/version"
	"github.com/spf13/cobra"

	"replayd/internal/cli"
	"replayd/internal/config"
	"replayd/internal/daemon"
	"replayd/internal/fault"
	"replayd/internal/replay"
	"replayd/internal/result"
	"replayd/internal/terminal"
)

type runCommand struct{ *cli.Flags }

func newRun(w *world) *cobra.Command {
	o := runCommand{cli.NewFlags()}
	c := &cobra.Command{
		Use: "run [TRACE] --url URL", Aliases: []string{"profile"}, Annotations: map[string]string{cli.AliasNote: "the same, always with AIPerf's defaults"}, Short: "Replay a trace once, then print a report",
		Long: `Replay a trace once, or send the load that the flags describe, and print a
report.

The command lines of aiperf profile, vllm bench serve and trace_replay.py are
taken too, with the defaults that they have there: see --help-aliases. All of
them are streamed; profile streams with --streaming alone, as in AIPerf. The
report goes to stdout, progress and the log to stderr. The first SIGINT or
SIGTERM lets requests in flight end, the second one cuts them; both print the
report.

Exit codes:
  0    done
  1    failed: no request ended ok, the server was not ready in time, or there
       was no connection 30 s after the first due time (see --keep-trying)
  2    wrong usage or input file
  3    --slo or --min-goodput was missed; the last line says by how much, or
       "not measured": something between buffers the answers, so that a bound
       on TPOT cannot be judged for over 5 % of the ok requests
  130  cut short by SIGINT; 143 by SIGTERM, 129 by SIGHUP`,
		Example: `  replayd run conversation_trace.jsonl --url http://127.0.0.1:8000
  replayd run trace.jsonl --url http://vllm:8000 --to 10m --slo ttft:2s`,
		Args: usage(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error { return o.run(c, w, args) },
	}
	o.Add(c)
	return c
}

func (o *runCommand) run(c *cobra.Command, w *world, args []string) error {
	if o.HelpAliases {
		return cli.ShowAliases(w.out, c.Flags())
	}
	w.outlive()
	o.Profile = c.CalledAs() == "profile"
	if o.SLO != "" && !c.Flags().Changed("min-goodput") {
		o.Least = 1
	}
	r, err := o.Order(args)
	if err != nil {
		return wrongInput(err)
	}
	for _, note := range o.Notes {
		w.log.Info("a flag changes nothing here", "flag", note[0], "because", note[1])
	}
	if len(r.Concurrency) > 1 {
		return o.sweep(c, w, r)
	}
	_, err = o.once(c, w, r)
	return err
}

// reachTime is how long a run goes on without a connection after its first request was due.
const reachTime = 30 * time.Second

// once executes an order, from its start to its report.
func (o *runCommand) once(c *cobra.Command, w *world, r cli.Order) (*account, error) {
	a := &account{
		world: w, order: r, summary: result.NewSummary(r.SLO, o.Workload.SLO.Session), progress: &terminal.Progress{},
		least: o.Least, end: make(chan struct{}),
	}
	w.drains(r.Config)
	if err := a.open(o.Flags); err != nil {
		a.stopWriting()
		return a, wrongInput(errors.Join(err, a.putBack()))
	}
	defer a.stopWriting()
	once := daemon.Once{
		Options: daemon.Options{
			Config: r.Config, UserAgent: "replayd/" + version.Version, Log: w.log, Stdin: w.in,
			Observers: a.observers(), Session: a.session, Clipped: &a.clipped, Reuse: &a.reuse, Failed: a.fail,
		},
		Serve: o.Listen != "", Version: version.Version, LogDropped: w.dropped, Hold: o.Hold,
		Started: func(g *daemon.Generation) { a.start(c.Context(), g) },
		Ended:   a.close,
	}
	if a.collector != nil {
		once.Warmed = []replay.Observer{a.collector}
	}
	if a.prompts != nil {
		once.Saved = a.prompts.add
	}
	if !o.KeepTrying {
		once.Patience = reachTime
	}
	if o.Cut {
		once.Limit = max(o.Duration+o.Grace, 1)
	}
	if a.sampler != nil {
		once.Sampler, once.SampleEvery = a.sampler, cli.SampleEvery
	}
	o.await(&once, w)
	err := once.Run(c.Context(), hardStop(c.Context()))
	if bad := (*config.Invalid)(nil); errors.As(err, &bad) {
		err = wrongInput(o.ByFlag(bad.Faults, r.Who))
	} else if found, ok := errors.AsType[fault.List](err); ok { // of a page or of records that cannot be opened
		code, build := exitFailed, (*daemon.ErrBuild)(nil)
		if errors.As(err, &build) {
			code = exitInput
		}
		err = &exitError{code, o.ByFlag(found, r.Who)}
	}
	if !a.begun {
		a.stopWriting()
		a.fail(a.putBack())
	}
	if screen := w.screen(); screen != nil {
		screen.End() // ends the display of the wait
	}
	if s := stopped(c.Context()); s != nil && !a.closed {
		return a, &exitError{s.code(), fmt.Errorf("%w before anything was sent", s)}
	}
	if errors.Is(err, daemon.ErrUnreached) {
		err = fmt.Errorf("%w (--keep-trying goes on all the same)", err)
	}
	if errors.Is(err, daemon.ErrNotReady) && once.WaitReady < o.Wait {
		err = fmt.Errorf("%w: and --start has come", err)
	}
	if err := errors.Join(append(a.failed, err)...); err != nil {
		if s, left := stopped(c.Context()), (*daemon.LeftError)(nil); s != nil && errors.As(err, &left) {
			return a, &exitError{s.code(), errors.Join(a.verdict, err)}
		}
		return a, err
	}
	return a, a.verdict
}

// await sets up the wait for the target. The wait ends at the time of --start, when the replay begins: a run that
// joined its plan late would leave out rows and look good. With next: the replay begins after the target is ready.
func (o *runCommand) await(once *daemon.Once, w *world) {
	once.WaitReady = o.Wait
	if o.Wait == 0 {
		return
	}
	if strings.HasPrefix(o.Start, "next:") {
		once.Epoch = func(ready time.Time) time.Time {
			epoch, _ := cli.StartInstant(o.Start, ready) // no error: it was read before
			return epoch
		}
	} else if until := time.Until(once.Config.Workloads[0].Epoch); until > 0 {
		once.WaitReady = min(once.WaitReady, until)
	}
	once.Tried = terminal.NewWaiting(w.screen(), w.log, once.WaitReady).Tried
}
