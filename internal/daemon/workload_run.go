package daemon

import (
	"context"
	"errors"
	"sync"
	"time"

	"replayd/internal/fault"
	"replayd/internal/replay"
	"replayd/internal/schedule"
)

// Pauses between two tries to read the rows again.
const (
	rereadFirst = time.Second
	rereadMost  = time.Minute
)

// play runs a workload to its end. If its rows can no longer be read and the options are Patient, play reads them again
// until that succeeds, and continues with the next loop.
func (w *workload) play(ctx, hard context.Context, o *Options) error {
	var runs sync.WaitGroup
	defer runs.Wait()
	for {
		r, ended := w.current(), make(chan error, 1)
		runs.Go(func() { ended <- r.Run(ctx, hard) })
		var lost replay.Lost
		select {
		case lost = <-w.lost:
		case err := <-ended:
			select {
			case lost = <-w.lost:
			default:
				return err
			}
		}
		if !lost.More { // a single pass, which has lost rows
			return lost.Err
		}
		if !w.again(ctx, lost, o) {
			return nil
		}
	}
}

// again reads the rows again until they have no faults. It returns false if a stop or a successor came first.
func (w *workload) again(ctx context.Context, lost replay.Lost, o *Options) bool {
	w.broken.Store(true)
	w.setFailure(lost.Err)
	o.Log.Error("rows cannot be read: the workload waits and the trace is retried", "workload", w.config.Name, "err", lost.Err)
	said, pause := "", rereadFirst
	for {
		begins, err := w.startFresh(ctx, lost.Next, o)
		switch {
		case err == nil && begins:
			w.broken.Store(false)
			w.setFailure(nil)
			o.Log.Info("the trace was reread and is replayed from the next loop on", "workload", w.config.Name, "sha256", w.now().rows.sha256())
			return true
		case err == nil || ctx.Err() != nil:
			return false
		case err.Error() != said:
			said = err.Error()
			w.setFailure(err)
			o.Log.Error("the trace has errors: retrying", "workload", w.config.Name, "err", err)
		}
		select {
		case <-time.After(pause):
		case <-w.quit:
		case <-ctx.Done():
		}
		pause = min(2*pause, rereadMost)
	}
}

// startFresh starts a new runner of reread rows with the first loop that was not begun, unless there is a successor.
func (w *workload) startFresh(ctx context.Context, next schedule.Loop, o *Options) (begins bool, err error) {
	rows, err := w.reopen(ctx)
	if err != nil {
		return false, err
	}
	made := &workload{config: w.config, server: w.server, played: played{rows: rows}}
	if err := wants(made.open("")); err != nil {
		_ = rows.Close() // err is returned
		return false, err
	}
	w.changing.Lock()
	defer w.changing.Unlock()
	w.mu.Lock()
	if w.retired {
		w.mu.Unlock()
		return false, rows.Close()
	}
	old, earlier := w.rows, w.runner
	w.rows, w.plan, w.prompter = made.rows, made.plan, made.prompter
	w.mu.Unlock()
	from := resume(w.plan, next, time.Now())
	from.After, from.Paused = earlier, earlier.Paused()
	if from.Part != anew || w.side.of != nil { // both sides have one part
		from.Part = earlier.Part()
	}
	fresh := w.make(from)
	w.mu.Lock()
	w.earlier, w.runner = earlier, fresh
	w.mu.Unlock()
	w.count.Plays(traceInfo(rows.stats))
	w.show(o.Board)
	_ = old.Close() // it cannot be read any more
	return true, nil
}

// wants joins faults without their keys: the configuration has not changed.
func wants(f fault.List) error {
	var errs []error
	for _, one := range f {
		errs = append(errs, errors.New(one.Want))
	}
	return errors.Join(errs...)
}

// resume returns where a plan with changed rows continues: at the start of the next loop, or of the one after it if that has
// passed. A closed plan begins anew, and so does one of which no loop had begun.
func resume(p *schedule.Plan, next schedule.Loop, now time.Time) replay.Handover {
	if p.Closed() || next == (schedule.Loop{}) {
		return replay.Handover{Part: anew}
	}
	at := next.Start.Round(0)
	if wall := now.Round(0); at.Before(wall) {
		at = wall
	}
	if !p.FollowsWall() { // the numbers of the loops continue
		if soonest := now.Round(0).Add(handoverAhead); at.Before(soonest) {
			at = soonest
		}
		return replay.Handover{Begin: at, Place: replay.Place{
			Loop: schedule.Loop{Number: next.Number, Start: at}, Clock: replay.Instant{Own: now, Wall: now.Round(0)},
		}}
	}
	l := p.Loop(time.Time{}, at)
	if l.Start.Round(0).Before(at) {
		l, _ = p.Next(l, at)
	}
	return replay.Handover{Begin: l.Start.Round(0)}
}

// handoverAhead is how long before its instant a handover is arranged: enough for the successor to build its first
// messages and open connections.
const handoverAhead = time.Second
