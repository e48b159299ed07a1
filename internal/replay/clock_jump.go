package replay

import (
	"fmt"
	"time"

	"replayd/internal/dispatch"
)

// readClock reads the monotonic and the wall clock. wall is nil for the system's wall clock.
func readClock(wall func() time.Time) dispatch.Clock {
	now := time.Now()
	if wall == nil {
		return dispatch.Clock{Own: now, Wall: now.Round(0)} // Round(0) strips the monotonic reading
	}
	return dispatch.Clock{Own: now, Wall: wall().Round(0)}
}

// rejoins holds a text for each reason why a replay rejoins its plan.
var rejoins = [...]string{
	dispatch.Stopped:    "this process was not running for a while: rows due until now are missed",
	dispatch.Ahead:      "the wall clock is ahead: it was set, or the system slept; rows due until now are missed",
	dispatch.SetBack:    "the wall clock was set back: no row goes out twice, the replay waits until the clock comes to the next one",
	dispatch.SetFarBack: "the wall clock was set back by more than a loop: the replay joins the loop where it is now",
}

// tellRejoined reports that the replay rejoins its plan, and by how much. The caller holds the lock.
func (r *Runner) tellRejoined(why dispatch.Rejoin, by time.Duration) {
	r.say(func() {
		r.w.Log.Warn(rejoins[why], "workload", r.w.Name, "jump", by)
		if r.w.Rejoined != nil {
			r.w.Rejoined(fmt.Sprintf("%s (%s, by %v)", rejoins[why], r.w.Name, by.Round(time.Millisecond)))
		}
	})
}
