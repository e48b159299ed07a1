package daemon

import (
	"cmp"
	"context"
	"errors"
	"io"
	"reflect"
	"sync"
	"time"

	"replayd/internal/config"
	"replayd/internal/replay"
	"replayd/internal/schedule"
)

// A handover says from which workload a workload takes over, and when and where.
type handover struct {
	replay.Handover
	before *workload      // the predecessor; nil: none
	at     replay.Instant // when the predecessor retires
	moves  bool           // the plan goes on otherwise than it would have
}

// anew as a Part stands for the next one: the plan begins anew, and no request may have the id of an earlier one.
const anew = -1

// begun counts how often each workload has begun anew in this process, by name.
type begun struct {
	mu    sync.Mutex
	times map[string]int
}

// next counts one more begin of workloads that begin together, and returns the number of those before, of the one that
// has most.
func (b *begun) next(workloads ...string) (before int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.times == nil {
		b.times = map[string]int{}
	}
	for _, name := range workloads {
		before = max(before, b.times[name])
	}
	for _, name := range workloads {
		b.times[name] = before + 1
	}
	return before
}

// follow decides where a workload goes on that takes over from another one.
//
//   - A finished once stays finished, unless its rows are others.
//   - A plan that follows the wall clock is joined where that is.
//   - Every other plan of the same rows goes on where it stands: at the next row. Where the instants of the rows have
//     changed, the next row is the same.
//   - A plan of other rows begins anew.
func (w *workload) follow(from *handover) {
	before := from.before
	from.Part = anew
	if before == nil {
		return
	}
	rows, kind := w.sameRows(before), w.sameKind(before)
	switch {
	case before.ended():
		from.Over = rows && kind && w.config.Repeat.Mode == schedule.Once && !before.broken.Load()
		return
	case w.plan.FollowsWall():
		from.Begin = w.after(before, &from.at)
		from.moves = !rows || !w.samePlan(before)
		if !from.moves {
			from.Part = before.current().Part()
		}
		return
	case before.now().plan.FollowsWall():
		w.beginAt(from)
		return
	}
	place, begun := before.current().Place()
	switch {
	case !begun: // it begins by itself, as its predecessor would have
		from.at = replay.Instant{Own: time.Now(), Wall: from.at.Wall.Add(-handoverAhead)}
		return
	case !rows || !kind:
		w.beginAt(from)
		return
	}
	from.Part, from.Place, from.Begin = before.current().Part(), place, from.at.Wall
	if !w.plan.Closed() {
		from.Begin = place.Clock.Planned(from.at.Own)
		if from.moves = !w.samePlan(before); from.moves {
			from.Place.Plan = before.now().plan
		}
	}
}

// beginAt begins a plan anew when the predecessor retires.
func (w *workload) beginAt(from *handover) {
	from.Begin, from.moves = from.at.Wall, true
	if !w.plan.Closed() {
		from.Place = replay.Place{Loop: schedule.Loop{Start: from.Begin}, Clock: from.at}
	}
}

// after returns the planned instant at which a workload takes over: at, or later after the clock was set back, so that no row
// is sent twice. If the clock was set back by more than a loop, the workload joins the loop at the present instant, as it
// does without a reload.
func (w *workload) after(before *workload, at *replay.Instant) time.Time {
	played := before.current().Played()
	if before.now().plan.FollowsWall() && played.After(at.Wall) &&
		played.Sub(at.Wall) <= w.plan.Period(w.plan.Loop(time.Time{}, at.Wall)) {
		at.Own, at.Wall = at.Own.Add(played.Sub(at.Wall)), played
	}
	return at.Wall
}

func (w *workload) sameRows(of *workload) bool {
	a, b := w.config, of.config
	for _, c := range []*config.Workload{&a, &b} {
		c.Trace.Path, c.Trace.LengthLimits = "", replay.LengthLimits{}
	}
	return reflect.DeepEqual(a.Trace, b.Trace) && a.Dataset.Given() == b.Dataset.Given() && w.now().rows.digest() == of.now().rows.digest()
}

// sameKind reports whether the rows of two workloads come due in the same manner, so that one can go on for the other.
func (w *workload) sameKind(as *workload) bool {
	a, b := w.config, as.config
	return a.Arrival == b.Arrival && a.RateOf == b.RateOf && a.Users == b.Users && a.Shard == b.Shard &&
		a.Repeat.Mode == b.Repeat.Mode && a.Repeat.Align == b.Repeat.Align
}

// samePlan reports whether a plan of the same rows has the same instants.
func (w *workload) samePlan(as *workload) bool {
	a, b := w.config.Plan(), as.config.Plan()
	if w.config.Arrival != schedule.Poisson && w.config.Arrival != schedule.Gamma { // the seed draws nothing
		a.Seed = b.Seed
	}
	return reflect.DeepEqual(a, b)
}

// tellCut says what a reload has changed about the instants of rows: how many of the loop are not sent, and what is due next.
func (g *Generation) tellCut(ctx context.Context, w *workload, from handover) {
	if !from.moves {
		return
	}
	before, log := from.before, g.options.Log
	before.readers.Add(1)
	g.shared.running.Go(func() {
		defer before.readers.Done()
		args := []any{"workload", w.config.Name}
		if from.Place.Plan == nil {
			if n, err := before.rest(ctx, from.at); err == nil {
				args = append(args, "not_sent", n)
			}
		}
		if due, err := w.nextDue(from); err == nil {
			args = append(args, "next_due", due.UTC().Format(time.RFC3339Nano))
		}
		log.Info("the reload changes when rows are due", args...)
	})
}

var errEndless = errors.New("the rows have no end")

// rest counts the rows of the loop that a handover leaves out.
func (w *workload) rest(ctx context.Context, at replay.Instant) (n int, err error) {
	plan := w.now().plan
	if plan.Endless() {
		return 0, errEndless
	}
	l := plan.Loop(time.Time{}, at.Wall)
	if place, _ := w.current().Place(); plan.Closed() {
		begun, err := place.Begun(ctx)
		if err != nil {
			return 0, err
		}
		n = -begun
	} else if !plan.FollowsWall() {
		l, at.Wall = place.Loop, place.Clock.Planned(at.Own)
	}
	rows, err := plan.Rows(l, at.Wall)
	if err != nil {
		return 0, err
	}
	for ctx.Err() == nil {
		if _, err := rows.Next(); errors.Is(err, io.EOF) {
			return n, nil
		} else if err != nil {
			return n, err
		}
		n++
	}
	return n, ctx.Err()
}

// nextDue returns when the first row comes due after a handover.
func (w *workload) nextDue(from handover) (time.Time, error) {
	l := schedule.Loop{Start: from.Begin}
	switch {
	case w.plan.Closed():
		return from.Begin, nil
	case w.plan.FollowsWall():
		l = w.plan.Loop(time.Time{}, from.Begin)
	case from.Place.Plan != nil:
		held, _, over, err := w.plan.GoesOn(from.Place.Plan, from.Place.Loop, from.Begin)
		if err != nil || over {
			return time.Time{}, cmp.Or(err, io.EOF)
		}
		l = held
	}
	due, ok, err := w.plan.NextDue(l, from.Begin)
	if err == nil && !ok {
		err = io.EOF
	}
	return due, err
}
