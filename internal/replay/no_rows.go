package replay

import (
	"context"
	"errors"
	"fmt"

	"replayd/internal/dispatch"
	"replayd/internal/measure"
	"replayd/internal/schedule"
)

// Lost reports that the rows of a plan cannot be read any more: the trace has changed, or its disk fails.
type Lost struct {
	Err  error
	Next schedule.Loop // first loop of which no row was read; the zero Loop if the plan has not begun
	More bool          // Next exists
}

// unread is an error of reading rows.
type unread struct{ error }

func (u unread) Unwrap() error { return u.error }

func (f *feed) unread(err error) error {
	return unread{fmt.Errorf("workload %s: %w", f.r.w.Name, err)}
}

// reportLost reports that the feed ends in a loop of which it may have read rows.
func (f *feed) reportLost(lp *reading, err error) {
	if _, reading := errors.AsType[unread](err); f.r.w.Lost == nil || !reading {
		return
	}
	lost := Lost{Err: err, Next: lp.Loop.Loop, More: true}
	switch {
	case f.r.phase == measure.Warmup:
		lost.Next = schedule.Loop{}
	case lp.rows > 0:
		lost.Next, lost.More = f.after(lp)
	}
	f.r.w.Lost(lost)
}

// name waits until the name of the model is known. waited reports whether it had to.
func (f *feed) name(ctx context.Context) (waited bool, err error) {
	why := f.r.w.Target.nameless()
	if why == nil {
		return false, nil
	}
	f.reportNoRows(why)
	select {
	case <-f.r.w.Target.modelKnown:
		f.reportNoRows(nil)
		return true, nil
	case <-ctx.Done():
		return true, ctx.Err()
	}
}

func (f *feed) reportNoRows(why error) {
	if f.r.w.NoRows != nil {
		f.r.w.NoRows(why)
	}
}

// nameRow is name in the middle of a plan, when the target was unreachable at its start. While it waits, it drops the rows
// that were read ahead, and the replay rejoins the plan at the current time. A closed loop has no due rows ahead, so it
// keeps its rows.
func (f *feed) nameRow(ctx context.Context) error {
	if f.r.w.Target.nameless() == nil {
		return nil
	}
	if !f.r.closed {
		f.r.deliver(dispatch.Event{Kind: dispatch.LetGo})
	}
	if _, err := f.name(ctx); err != nil {
		return err
	}
	if !f.r.closed {
		return errOffPlan
	}
	return nil
}
