package replay

import (
	"context"
	"time"

	"replayd/internal/dispatch"
	"replayd/internal/measure"
	"replayd/internal/schedule"
)

// join returns the planned instant from which on rows are this runner's.
func (f *feed) join(ctx context.Context) (from time.Time, err error) {
	w := &f.r.w
	if w.Begin.IsZero() && f.r.epoch.IsZero() {
		if err := w.Target.await(ctx); err != nil {
			return from, err
		}
		if w.BeforeFirst != nil {
			w.BeforeFirst(ctx)
		}
	}
	waited, err := f.name(ctx)
	if err != nil {
		return from, err
	}
	if !w.Begin.IsZero() {
		return f.takeOver(ctx, waited)
	}
	now := w.clock().Wall
	switch epoch := f.r.epoch; {
	case !epoch.IsZero(): // the instants are known, whatever the target does
		f.from.Start = epoch
	case w.Sides != nil && f.r.phase != measure.Warmup:
		if f.from.Start, err = w.Sides.meet(ctx, w.side(), now.Add(lead)); err != nil {
			return from, err
		}
		now = w.clock().Wall
	default:
		f.from.Start = now.Add(lead)
	}
	return now, nil
}

// takeOver is join for a runner that takes over from another.
func (f *feed) takeOver(ctx context.Context, waited bool) (from time.Time, err error) {
	w := &f.r.w
	from, now := w.Begin.Round(0), f.now()
	switch place := w.Place; {
	case place.left != nil:
		p, err := place.left.take(ctx)
		if err != nil {
			return from, err
		}
		f.r.mu.Lock()
		f.r.progress, w.Place.left = p, nil
		f.r.mu.Unlock()
		if f.from = p.loop; f.from.Start.IsZero() {
			f.from.Start = from
		}
		return f.now(), nil
	case !place.Loop.Start.IsZero():
		if f.from, err = place.loop(w.Plan); err != nil {
			return from, f.unread(err)
		}
		if place.Plan == nil {
			break
		}
		var over bool
		f.from, f.skip, over, err = w.Plan.GoesOn(place.Plan, f.from, from)
		switch {
		case err != nil:
			return from, f.unread(err)
		case over:
			return from, errEnough
		}
	case f.r.epoch.IsZero():
		f.from.Start = from
	default:
		f.from.Start = f.r.epoch
	}
	if waited && from.Before(now) { // rows due while it waited for the model's name are not replayed
		from, f.skip = now, nil
	}
	return from, nil
}

// now returns the planned instant of now.
func (f *feed) now() time.Time {
	f.r.mu.Lock()
	defer f.r.mu.Unlock()
	return f.r.d.Planned(f.r.w.clock())
}

// loop returns the loop that holds a planned instant.
func (f *feed) loop(at time.Time) schedule.Loop {
	l := f.r.w.Plan.Loop(f.from.Start, at)
	if !f.r.w.Plan.FollowsWall() {
		l.Number, l.Pass = l.Number+f.from.Number, f.from.Pass
	}
	return l
}

// begin notes the first loop of the stage.
func (f *feed) begin(l schedule.Loop) {
	f.r.mu.Lock()
	defer f.r.mu.Unlock()
	if f.r.w.Place.first.IsZero() {
		f.r.first = l.Start
	}
	if f.r.phase == measure.Profiling && f.r.loop.Start.IsZero() {
		f.r.loop = l
	}
}

// skips reports whether the predecessor had a row.
func (f *feed) skips(due *schedule.Due) bool {
	switch first := f.skip; {
	case first == nil, due.Loop.Number != first.Loop.Number:
		return false
	case due.Number == first.Number && due.Pass == first.Pass:
		f.skip = nil
		return false
	}
	return true
}

// passRest passes the rows that the predecessor had read in a closed loop, and that had not come due.
func (f *feed) passRest(ctx context.Context, from time.Time) error {
	if f.r.phase == measure.Warmup {
		return nil
	}
	rest := f.r.rest
	for len(rest) > 0 {
		l := f.openLoop(rest[0].Loop, from, false)
		for ; len(rest) > 0 && rest[0].Loop.Number == l.Number; rest = rest[1:] {
			due := rest[0]
			if due.After != nil && f.r.w.Plan.Rereads() { // its content was shed
				again, err := f.r.w.Plan.Reread(due.Record)
				if err != nil {
					return f.unread(err)
				}
				due.Record = again
			}
			if err := f.pass(ctx, l, due); err != nil {
				return err
			}
		}
		if l.Number != f.from.Number {
			f.r.deliver(dispatch.Event{Kind: dispatch.LoopRead, Loop: l.Loop})
		}
	}
	return nil
}
