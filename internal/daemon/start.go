package daemon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"replayd/internal/fault"
	"replayd/internal/records"
	"replayd/internal/replay"
)

// ClaimState takes the state file for this generation. It waits for another process that has the file, until ctx ends.
func (g *Generation) ClaimState(ctx context.Context, wait time.Duration) (err error) {
	g.claimed, err = g.shared.state.Claim(ctx, g.options.Config.State.Path, wait)
	return err
}

// OpenRecords directs the records to this generation's file. After an error the sink tries again.
func (g *Generation) OpenRecords() error {
	r := g.options.Config.Records
	err := g.shared.sink.Use(records.Options{Path: r.Path, MaxBytes: int64(r.MaxBytes), Keep: r.Keep, Gzip: r.Gzip})
	if cause := errors.Unwrap(err); cause != nil {
		err = fault.At("records.path", cause)
	}
	return err
}

// Start replays all workloads. When ctx is cancelled they drain; a cancelled hard aborts the requests in flight.
func (g *Generation) Start(ctx, hard context.Context) {
	side, end := context.WithCancel(context.WithoutCancel(ctx))
	g.shared.endSink, g.shared.sinkDone = end, make(chan struct{})
	go func() { // Close waits for it
		defer close(g.shared.sinkDone)
		g.shared.sinkErr = g.shared.sink.Run(side)
	}()
	g.shared.ending = newEnding()
	g.shared.ending.drain.Store(int64(g.options.Config.Drain))
	g.shared.ending.follow(ctx, hard)
	g.shared.paced.Go(func() { g.shared.pacer.Run(side) })
	g.shared.paced.Go(func() { g.shared.watchdog.run(side) })
	g.startScrapers(ctx)
	g.shared.state.Use(g.claimed)
	g.startComparisons(ctx)
	g.shared.paced.Go(func() { g.shared.state.Run(side) })
	for _, w := range g.workloads {
		g.start(ctx, hard, w, handover{Handover: replay.Handover{Part: anew}})
	}
}

// Close waits until this generation and those before it, which were told to stop, have ended, and frees their
// resources. It may replace Start. What is stuck is left behind with a LeftError: the rest is written first.
func (g *Generation) Close() error {
	s := g.shared
	if s.endSink == nil {
		return g.discard()
	}
	for _, w := range g.workloads {
		close(w.leave)
	}
	for _, one := range g.servers {
		one.release()
	}
	g.endScrapers(nil)
	var left []string
	if !endsWithin(s.ending.workloads, s.running.Wait) {
		left = g.leave()
	}
	s.endSink()
	g.endComparisons(nil)
	// The last judgments are part of the state. A comparison that is stuck is in it as it was.
	if !endsWithin(s.ending.judged, s.paced.Wait) {
		judging := s.watchdog.left("comparison")
		for _, c := range judging {
			left = append(left, fmt.Sprintf("comparison %q", c.name))
		}
		if len(judging) == 0 {
			left = append(left, "the pacer")
		}
	}
	if !endsWithin(s.ending.files, s.state.Close) {
		left = append(left, "the state file")
	}
	if !endsBefore(s.sinkDone, s.ending.files) {
		return &LeftError{append(left, "the end of the records")}
	}
	if len(left) > 0 {
		return errors.Join(&LeftError{left}, s.sinkErr)
	}
	return s.sinkErr
}

// leave reports the parts that have not ended in time.
func (g *Generation) leave() (what []string) {
	for _, w := range g.shared.watchdog.left("workload") {
		n := w.ledger()
		g.options.Log.Error("a workload is stuck and left behind: its requests in flight and its waiting rows are lost",
			"workload", w.name, "in_flight", n.InFlight, "waiting", n.Waiting)
		what = append(what,
			fmt.Sprintf("workload %q (%d requests in flight, %d waiting)", w.name, n.InFlight, n.Waiting))
	}
	if len(what) == 0 {
		g.options.Log.Error("a target, or what reads its metrics, is stuck and left behind")
		what = append(what, "what reads a target")
	}
	return what
}

// Requests returns the number of requests of one pass over whole traces; 0: it is not known in advance.
func (g *Generation) Requests() int {
	n := 0
	for _, w := range g.workloads {
		c := w.config
		t := c.Trace
		filtered := t.OverLimit == "filter" && (t.MaxInput > 0 || t.MaxOutput > 0 || t.MaxContext > 0)
		joins := !c.Epoch.IsZero() && c.Epoch.Before(time.Now())
		if c.Repeat.Mode != "once" || joins || t.From != 0 || t.To != 0 || c.Shard.Of > 1 || filtered {
			return 0
		}
		rows := w.rows.stats.Requests
		if c.Rows > 0 {
			rows = min(rows, c.Rows)
		}
		n += rows
	}
	return n
}
