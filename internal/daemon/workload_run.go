package daemon

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"time"

	"replayd/internal/config"
	"replayd/internal/replay"
	"replayd/internal/schedule"
)

// Pauses between two tries to read the rows again.
const (
	rereadFirst = time.Second
	rereadMost  = time.Minute
)

// play runs a workload to its end. If its rows can no longer be read and the options are Patient, play reads them again until that
// succeeds, and continues with the next loop.
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
	w.held(lost.Err)
	o.Log.Error("rows cannot be read: the workload waits and the trace is retried", "workload", w.config.Name, "err", lost.Err)
	said, pause := "", rereadFirst
	for {
		begins, err := w.startFresh(ctx, lost.Next, o)
		switch {
		case err == nil && begins:
			w.broken.Store(false)
			w.held(nil)
			o.Log.Info("the trace was reread and is replayed from the next loop on", "workload", w.config.Name, "sha256", w.sha256())
			return true
		case err == nil || ctx.Err() != nil:
			return false
		case err.Error() != said:
			said = err.Error()
			w.held(err)
			o.Log.Error("the trace has errors: retrying", "workload", w.config.Name, "err", err)
		}
		timer := time.NewTimer(pause)
		pause = min(2*pause, rereadMost)
		select {
		case <-timer.C:
		case <-w.quit:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// startFresh reads the rows, and starts a new runner with the first loop of which nothing was sent. begins is false if the workload has
// a successor.
func (w *workload) startFresh(ctx context.Context, next schedule.Loop, o *Options) (begins bool, err error) {
	rows, err := w.reopen(ctx)
	if err != nil {
		return false, err
	}
	made := &workload{config: w.config, server: w.server, rows: rows}
	if err := wants(made.open("")); err != nil {
		_ = rows.Close() // err is returned
		return false, err
	}
	w.mu.Lock()
	if w.retired {
		w.mu.Unlock()
		return false, rows.Close()
	}
	old := w.rows
	w.rows, w.plan, w.prompter = made.rows, made.plan, made.prompter
	begin, epoch := resume(w.plan, next, time.Now())
	w.earlier = w.runner
	w.runner = w.make(w.earlier, begin, epoch, w.earlier.Paused())
	w.mu.Unlock()
	w.count.Plays(traceInfo(rows.stats))
	w.show(o.Board)
	_ = old.Close() // it cannot be read any more
	return true, nil
}

// wants joins faults without their keys: the configuration has not changed.
func wants(f config.Faults) error {
	var errs []error
	for _, fault := range f {
		errs = append(errs, errors.New(fault.Want))
	}
	return errors.Join(errs...)
}

// resume returns where a plan with changed rows continues: at the start of the next loop, or of the one after it if that has passed.
// Both instants are zero for a closed plan, and if no loop had begun: then the plan begins by itself.
func resume(p *schedule.Plan, next schedule.Loop, now time.Time) (begin, epoch time.Time) {
	if p.Closed() || next == (schedule.Loop{}) {
		return time.Time{}, time.Time{}
	}
	at := next.Start.Round(0)
	if now = now.Round(0); at.Before(now) {
		at = now
	}
	if !p.FollowsWall() { // the numbers of the loops continue
		if soonest := now.Add(handoverAhead); at.Before(soonest) {
			at = soonest
		}
		return at, at.Add(-time.Duration(next.Number) * p.Period(next))
	}
	l := p.Loop(time.Time{}, at)
	if l.Start.Round(0).Before(at) {
		l, _ = p.Next(l, at)
	}
	return l.Start.Round(0), time.Time{}
}

// held reports why nothing comes due, or with nil that rows come due again.
func (w *workload) held(why error) {
	if why == nil {
		w.failure.Store(nil)
	} else {
		text := why.Error()
		w.failure.Store(&text)
	}
	w.count.Fault(why != nil)
}

func (w *workload) current() *replay.Runner {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.runner
}

func (w *workload) sha256() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rows.stats.SHA256[:min(12, len(w.rows.stats.SHA256))]
}

// files returns the files of the rows that are played, as they were when they were opened.
func (w *workload) files() []os.FileInfo {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.rows.files)
}

// plays reports whether other rows equal the rows that are played. If so, it remembers their files.
func (w *workload) plays(other *rowSource) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	same := w.rows.stats.SHA256 == other.stats.SHA256 && w.rows.texted == other.texted
	if same {
		w.rows.files = other.files
	}
	return same
}

// pause pauses or resumes the workload. It reports whether that changed anything.
func (w *workload) pause(paused bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.earlier != nil {
		w.earlier.Pause(paused)
	}
	return w.runner.Pause(paused)
}

func (w *workload) setDrain(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.earlier != nil {
		w.earlier.SetDrain(d)
	}
	w.runner.SetDrain(d)
}

// retire leaves the rows due from an instant on to a successor.
func (w *workload) retire(at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.retired = true
	close(w.quit)
	w.runner.Retire(at)
}
