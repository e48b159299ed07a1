package replay

import (
	"context"
	"errors"
	"fmt"

	"replayd/internal/dispatch"
	"replayd/internal/measure"
	"replayd/internal/schedule"
)

// Lost says that a plan's rows cannot be read any more: the trace changed, or its disk fails.
type Lost struct {
	Err  error
	Next schedule.Loop // the first loop of which no row was read; the zero Loop where the plan has not begun
	More bool          // there is such a loop
}

// errUnread marks an error of reading rows.
var errUnread = errors.New("rows cannot be read")

type unread struct{ error }

func (u unread) Is(err error) bool { return err == errUnread }
func (u unread) Unwrap() error     { return u.error }

// unread is an error of reading rows.
func (f *feed) unread(err error) error {
	return unread{fmt.Errorf("workload %s: %w", f.r.w.Name, err)}
}

// tellLost tells that the feed ends in a loop of which rows may have been read.
func (f *feed) tellLost(lp *reading, err error) {
	if f.r.w.Lost == nil || !errors.Is(err, errUnread) {
		return
	}
	lost := Lost{Err: err, Next: lp.Loop.Loop, More: true}
	switch {
	case f.r.phase == measure.Warmup:
		lost.Next = schedule.Loop{}
	case lp.rows > 0:
		lost.Next, lost.More = f.after(lp, readClock(f.r.w.Wall).Wall)
	}
	f.r.w.Lost(lost)
}

// name waits until requests have a model's name. Held: it had to wait.
func (f *feed) name(ctx context.Context) (held bool, err error) {
	why := f.r.w.Target.nameless()
	if why == nil {
		return false, nil
	}
	f.tellHeld(why)
	select {
	case <-f.r.w.Target.chosen:
		f.tellHeld(nil)
		return true, nil
	case <-ctx.Done():
		return true, ctx.Err()
	}
}

func (f *feed) tellHeld(why error) {
	if f.r.w.Held != nil {
		f.r.w.Held(why)
	}
}

// nameRow waits likewise in the middle of a plan: the target was not there when it began. Rows that were read ahead are let go
// meanwhile, and the replay rejoins where the clock is. In a closed plan nothing falls due before it is read.
func (f *feed) nameRow(ctx context.Context) error {
	if f.r.w.Target.nameless() == nil {
		return nil
	}
	if !f.r.closed {
		f.r.tell(dispatch.Event{Kind: dispatch.LetGo})
	}
	if _, err := f.name(ctx); err != nil {
		return err
	}
	if !f.r.closed {
		return errAstray
	}
	return nil
}
