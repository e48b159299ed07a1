package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"replayd/internal/cli"
	"replayd/internal/daemon"
	"replayd/internal/export"
	"replayd/internal/measure"
	"replayd/internal/result"
	"replayd/internal/synth"
	"replayd/internal/terminal"
)

// An account holds what a run shows and reports, and its verdict.
type account struct {
	*world
	order    cli.Order
	summary  *result.Summary
	progress *terminal.Progress
	reuse    synth.Reuse    // tokens that the prompts share with each other
	ledger   measure.Ledger // set when the run has ended
	least    float64        // required attainment

	folder    *export.Artifacts // nil: none
	collected result.Run        // set when a run with a collector has ended
	collector *result.Collector // nil: single requests are not kept
	sampler   *export.Sampler   // nil: server and GPU metrics are not kept
	prompts   *promptFile       // nil: none
	clipped   atomic.Int64      // rows cut to a limit
	written   chan error
	stop      context.CancelFunc

	notExact func() string // why exact lengths are not asked for; "": they are
	requests int           // expected number of requests; 0: not known
	end      chan struct{}
	shown    sync.WaitGroup
	begun    bool // a request may have been sent
	closed   bool
	verdict  error // error of a run that did not fail, such as a missed bound

	mu     sync.Mutex
	failed []error
}

func (a *account) fail(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failed = append(a.failed, err)
}

// start shows the progress of the run until close.
func (a *account) start(ctx context.Context, g *daemon.Generation) {
	a.requests, a.begun, a.notExact = g.Requests(), true, g.NotExact
	if a.folder != nil && a.folder.Moved != "" {
		a.log.Info("files of an earlier run moved", "dir", a.folder.Moved)
	}
	outlook := func() terminal.Outlook {
		s := g.Progress()
		return terminal.Outlook{
			Requests: a.requests, Ledger: s.Ledger, Length: s.Length, Left: s.Left, Stopping: ctx.Err() != nil,
		}
	}
	a.shown.Go(func() {
		if screen := a.screen(); screen != nil {
			a.progress.Show(screen, outlook, a.end)
		} else {
			a.progress.Log(a.log, outlook, a.end)
		}
	})
}

// close prints the report and determines the verdict.
func (a *account) close(ledger measure.Ledger, cut error) {
	close(a.end)
	a.shown.Wait()
	a.closed, a.ledger = true, ledger
	if s := (*signaled)(nil); errors.As(cut, &s) {
		a.verdict = a.cutShort(s)
	} else if cut != nil {
		a.verdict = cut
	}
	a.fail(a.save())
	if a.verdict != nil {
		fmt.Fprintf(a.out, "%v: the figures are of that part\n\n", a.verdict)
	}
	a.fail(a.report())
	more := &terminal.Table{Columns: a.columns}
	if a.order.Table == string(cli.Own) {
		lengths := a.summary.Lengths()
		lengths.NotExact = a.notExact()
		for _, line := range lengths.Lines() {
			more.Line(line[0], "%s", line[1])
		}
		more.Line("prefix cache", "%v", a.cache())
		if warm := a.cache().Warm(); warm != "" {
			more.Line("warm", "%s", warm)
		}
	}
	if n := a.clipped.Load(); n > 0 {
		more.Line("clipped", "%d, cut to the limits on their lengths", n)
	}
	_, err := io.WriteString(a.out, more.String())
	a.fail(errors.Join(err, a.summary.WriteFailures(a.out, ledger, a.columns)))
	if a.verdict != nil {
		return
	}
	a.verdict = judge(ledger, a.least, func() string { return a.summary.Missed(ledger, a.least) })
	if flag := cli.WayOut(a.summary.Failure(ledger)); flag != "" && ledger.Outcomes[measure.OK] == 0 {
		a.verdict = fmt.Errorf("%w: try %s", a.verdict, flag)
	}
}

// cutShort returns the verdict of a run that a signal stopped, or nil if the signal came so late that no request was
// left out.
func (a *account) cutShort(s *signaled) error {
	done, of := a.ledger.Finished(), ""
	if a.requests > 0 {
		if done-a.ledger.Outcomes[measure.Aborted] >= int64(a.requests) {
			return nil
		}
		of = fmt.Sprintf(" of %d", a.requests)
	}
	return &exitError{s.code(), fmt.Errorf("cut short by %s after %d%s requests", s.name(), done, of)}
}

// cache returns how many prompt tokens the server's prefix cache had. With several shards, how much the load explains
// is not known, because this process does not know what the other shards sent.
func (a *account) cache() *result.Cache {
	tokens, known := a.reuse.Tokens()
	return a.summary.Cache(tokens, known && a.order.Config.Workloads[0].Shard.Of <= 1, a.collected.ServerSeries)
}
