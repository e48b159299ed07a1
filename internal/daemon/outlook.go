package daemon

import (
	"fmt"
	"time"
)

// outlook says when the next request of a workload is due at an instant, and which share of its loop is without rows.
func (w *workload) outlook(now time.Time) (string, error) {
	p := w.plan
	if p.Closed() {
		return "requests are due when others have ended (closed loop)", nil
	}
	l := p.Loop(now, now) // where it does not follow the wall clock, it begins when the target has answered
	at, ok, err := p.NextDue(l, now)
	if err != nil {
		return "", err
	}
	text := fmt.Sprintf("next request due at %s, in %v", at.UTC().Format(time.RFC3339), at.Sub(now).Round(time.Second))
	switch {
	case !ok:
		text = "no request is due"
	case !p.FollowsWall():
		text = fmt.Sprintf("first request due %v after the target has answered", at.Sub(now).Round(time.Second))
	}
	return text + w.idleInWords(now), nil
}

// idleInWords says which share of the loop that is played at an instant, or is next, is without rows:
// ", 18.2 % of the loop without rows".
func (w *workload) idleInWords(now time.Time) string {
	idle, known := w.plan.Idle(w.plan.Period(w.plan.Loop(now, now)))
	if !known {
		return ""
	}
	return fmt.Sprintf(", %.1f %% of the loop without rows", 100*idle)
}
