// Command replayd replays LLM request traces against an OpenAI-compatible server and exposes client-side metrics on
// /metrics.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/common/promslog"
	"github.com/prometheus/common/version"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"replayd/internal/cli"
	"replayd/internal/config"
	"replayd/internal/daemon"
	"replayd/internal/scarce"
	"replayd/internal/terminal"
)

// Exit codes.
const (
	exitDone   = 0
	exitFailed = 1 // failed at run time; run: also if no request ended ok
	exitInput  = 2 // wrong usage, configuration or input file
	exitMissed = 3 // the run finished but missed its SLO or --min-goodput

	exitSignal = 128 // plus the signal's number, as in shells: run was cut short
)

// world is everything outside the process that a command uses. Tests replace it to run a command.
type world struct {
	in       io.Reader
	out, err io.Writer // for people: what controls a terminal is escaped
	data     io.Writer // stdout for files and JSON, byte for byte; set before a command runs
	columns  int       // width of the terminal that out is; 0: out is none
	args     []string  // as they were typed
	env      []string
	format   logFormat      // --log.format
	log      *slog.Logger   // set before a command runs, from --log.level and --log.format
	dropped  func() uint64  // lines of err that were not written; nil: none are
	drain    atomic.Int64   // how long requests in flight may go on after the first signal, in ns
	hangups  chan os.Signal // SIGHUP for serve, from the start of the process on
	nohup    bool           // SIGHUP was ignored when the process began
}

// drains tells how long requests in flight may go on after the first signal.
func (w *world) drains(c config.Config) { w.drain.Store(int64(c.Drain)) }

// screen returns the terminal for progress, or nil if progress belongs in the log.
func (w *world) screen() *terminal.Screen {
	s, ok := w.err.(*terminal.Screen)
	if !ok || !s.Terminal() || w.format == "json" {
		return nil
	}
	return s
}

func main() {
	if os.Getenv("GOGC") == "" {
		// Requests in flight make little garbage, so collecting it twice as often has no measurable cost and saves
		// memory of a sidecar's pod.
		debug.SetGCPercent(50)
	}
	if most := scarce.MemoryLimit(os.DirFS("/")); most > 0 && os.Getenv("GOMEMLIMIT") == "" {
		// Near its limit the process collects garbage sooner, so that the kernel does not kill it.
		debug.SetMemoryLimit(most / 10 * 9)
	}
	if os.Getenv("GOMAXPROCS") == "" {
		// A thread that blocks in the kernel keeps its P in Go's scheduler, and the goroutines in that P's queue wait.
		// With one P more than there are cores, another thread goes on reading: docs/decisions/0017.
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1)
	}
	if version.Version == "" { // the Makefile sets it with the linker
		version.Version = "dev"
	}
	nohup := signal.Ignored(syscall.SIGHUP)
	signals := make(chan os.Signal, 3) // room for the second, which turns the drain into a hard stop
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// Without this, a write to a closed pipe would end the process. With it, the write fails and its writer handles the
	// error.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	lines := terminal.NewBacklog(os.Stderr)
	go lines.Run() // until the process ends
	code := run(os.Args[1:], signals, &world{
		in: os.Stdin, out: stdout{lines}, columns: terminal.Columns(os.Stdout), err: terminal.NewScreen(os.Stderr, lines, os.Getenv("TERM")), env: os.Environ(), dropped: lines.Dropped,
		nohup: nohup,
	})
	lines.Flush(time.Second)
	os.Exit(code)
}

// run executes one command line. The first signal cancels the command's context, the second cancels the context of
// hardStop. SIGHUP is a signal like the others, as when the terminal is closed, unless it was ignored; for serve it is a reload. A command that has not ended in time after that is left behind.
func run(args []string, signals <-chan os.Signal, w *world) int {
	hard, abort := context.WithCancel(context.Background())
	defer abort()
	ctx, stop := context.WithCancelCause(context.WithValue(hard, hardKey{}, hard))
	defer stop(nil)
	w.args, w.hangups = args, make(chan os.Signal, 1)
	w.data = &output{file: w.out, closed: func() { stop(&signaled{syscall.SIGPIPE}) }}
	w.out = terminal.Visible(w.data)
	root := newRoot(w)
	command, _, _ := root.Find(cli.InWords(args)) // what cannot be found is refused below
	go func() {                                   // ends with the process: it only turns signals into cancellations
		stops := 0
		for s := range signals {
			switch {
			case s == syscall.SIGHUP && command.Name() == "serve":
				select {
				case w.hangups <- s:
				default: // one is to come already
				}
			case s == syscall.SIGHUP && w.nohup:
			case stops == 0:
				first, _ := s.(syscall.Signal)
				stop(&signaled{first})
				stops++
			default:
				abort()
			}
		}
	}()
	root.SetArgs(cli.InWords(args))
	root.SetIn(w.in)
	root.SetOut(w.out)
	root.SetErr(w.err)
	err := w.execute(ctx, hard, root)
	if s := stopped(ctx); errors.Is(err, errOutputClosed) || s != nil && s.signal == syscall.SIGPIPE {
		return exitSignal + int(syscall.SIGPIPE) // the exit code of a program that SIGPIPE ended, without a message
	}
	if err == nil {
		return exitDone
	}
	code, ok := errors.AsType[*exitError](err)
	if s := stopped(ctx); s != nil && errors.Is(err, context.Canceled) && (!ok || code.code == exitInput) {
		printError(w, err)
		return s.code() // what was being read is not known to be wrong
	}
	if ok {
		printError(w, code.err)
		return code.code
	}
	printError(w, err)
	if _, build := errors.AsType[*daemon.ErrBuild](err); build {
		return exitInput
	}
	return exitFailed
}

// endWithin is how long a command may go on after the drain, or after the second signal. A reader of its log is waited for after that, and both
// together take less than 5 s.
const endWithin = 4500 * time.Millisecond

// execute executes a command. A command that a signal has not ended in time is stuck, for instance in a file system that does not answer: it is left
// behind, because nothing that it holds may keep the process.
func (w *world) execute(ctx, hard context.Context, root *cobra.Command) error {
	end := make(chan error, 1)
	go func() { end <- root.ExecuteContext(ctx) }()
	select {
	case err := <-end:
		return err
	case <-ctx.Done():
	}
	late, force := context.WithTimeout(context.Background(), time.Duration(w.drain.Load())+endWithin)
	defer force()
	sooner := context.AfterFunc(hard, func() { time.AfterFunc(endWithin, force) })
	defer sooner()
	select {
	case err := <-end:
		return err
	case <-late.Done():
	}
	code, why := exitFailed, context.Cause(ctx)
	if s := stopped(ctx); s != nil {
		code = s.code()
	}
	return &exitError{code, fmt.Errorf("%w, and ended by force: something is stuck, and what it had not written is lost", why)}
}

// signaled is why a command's context was cancelled.
type signaled struct{ signal syscall.Signal }

func (s *signaled) Error() string { return "stopped by " + s.name() }

// Is makes the error one of a cancelled context.
func (s *signaled) Is(err error) bool { return err == context.Canceled }

// name returns the name of the signal with SIG, as in kill.
func (s *signaled) name() string { return unix.SignalName(s.signal) }

func (s *signaled) code() int { return exitSignal + int(s.signal) }

// stopped returns the signal that cancelled a command's context, or nil.
func stopped(ctx context.Context) *signaled {
	s, _ := errors.AsType[*signaled](context.Cause(ctx))
	return s
}

// hardKey is the context key of the hard-stop context. The second signal cancels that context, which ends requests in
// flight.
type hardKey struct{}

func hardStop(ctx context.Context) context.Context { return ctx.Value(hardKey{}).(context.Context) }

type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// wrongInput marks an error as wrong usage, configuration or input.
func wrongInput(err error) error {
	if err == nil {
		return nil
	}
	return &exitError{exitInput, err}
}

func newRoot(w *world) *cobra.Command {
	level := promslog.NewLevel()
	w.format = "auto"
	root := &cobra.Command{
		Use:   "replayd COMMAND",
		Short: "Replays LLM request traces and measures what a client sees",
		Long: `replayd replays LLM request traces against any OpenAI-compatible server and puts
client-side latencies (TTFT, TPOT, ITL, e2e, lateness, goodput) on /metrics.`,
		Example: `  replayd demo    # everything, with nothing installed
  replayd run conversation_trace.jsonl --url http://127.0.0.1:8000`,
		SilenceErrors: true, SilenceUsage: true,
		PersistentPreRun: func(*cobra.Command, []string) {
			w.log = w.newLogger(level)
		},
	}
	root.PersistentFlags().Var(logLevel{level}, "log.level", "debug, info, warn or error")
	root.PersistentFlags().Var(&w.format, "log.format", "auto (for people on a terminal, else logfmt), logfmt or json")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		if args := c.Flags().Args(); !c.HasParent() && len(args) > 0 { // the flags are those of a command that there is none of
			return noCommand(c, args)
		}
		return wrongInput(cli.FlagError(c, err))
	})
	cli.SetHelp(root)
	root.Version = version.Print("replayd")
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetHelpCommand(newHelp())
	root.AddCommand(newServe(w), newRun(w), newCompare(w), newDemo(w), newSim(w), newTrace(w), newReport(w), newCheckConfig(w), newHealth(w), newRunbook(w), newVersion(w),
		newLifecycle(w, "pause", "Pause a daemon: requests that fall due are dropped"), newLifecycle(w, "resume", "Resume a paused daemon"))
	cli.Complete(root, map[string][]string{
		"run": cli.TraceFiles, "compare": cli.TraceFiles, "report": cli.TraceFiles, "check-config": {"yaml", "yml"},
		"info": cli.TraceFiles, "validate": cli.TraceFiles, "analyze": cli.TraceFiles, "synth": cli.TraceFiles,
		"convert": cli.TraceFiles, "slice": cli.TraceFiles,
	})
	// cobra reports unknown commands and arguments as plain errors: they are wrong usage too.
	root.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	root.Args = noCommand
	return root
}

// usage turns the error of an argument check into exit code 2.
func usage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if err := check(c, args); err != nil {
			return wrongInput(fmt.Errorf("%w (usage: %s)", err, c.UseLine()))
		}
		return nil
	}
}
