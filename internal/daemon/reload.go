package daemon

import (
	"context"
	"time"
)

// handoverAhead is how long before its instant a handover is arranged: the successor has its first messages built and
// its connections open by then.
const handoverAhead = time.Second

// Replace lets a generation run in the place of the one that it was built from: workloads that it took over run on
// untouched, new ones begin. One that changed begins with the first row due at an instant a second from now, at which
// the one before stops and drains; one that is gone drains at once, and its series go with it. What is paused stays so, and where
// all are, so is a new one. It waits for nothing.
func (g *Generation) Replace(ctx, hard context.Context, old *Generation) {
	g.paused = old.paused
	g.startScrapers(ctx)
	old.endScrapers(g)
	g.shared.waiting.Bound(int64(g.options.Config.MaxWaiting))
	at := g.wall().Add(handoverAhead)
	for _, w := range g.workloads {
		if w.started() {
			w.setDrain(time.Duration(g.options.Config.Drain))
			continue
		}
		before := old.workload(w.config.Name)
		switch {
		case before == nil:
			g.start(ctx, hard, w, handover{})
		case before.ended():
			g.start(ctx, hard, w, handover{before: before})
			before.remove()
		default:
			at := w.after(before, at)
			g.start(ctx, hard, w, handover{before: before, at: at})
			before.retire(at)
			before.remove()
		}
	}
	for _, w := range old.workloads {
		if g.workload(w.config.Name) == nil {
			w.stop()
			w.remove()
		}
	}
	for _, s := range old.servers {
		s.release()
	}
	g.releaseAsked()
}

// settle lets targets that are new answer first, where rows would go out uncorrected or late without that: a successor begins at
// an instant, whether they have or not. That takes 5 s at most.
func (g *Generation) settle(ctx context.Context, old *Generation) {
	for _, w := range g.workloads {
		if !w.started() && old.workload(w.config.Name) != nil {
			g.keepServer(ctx, w.server)
			g.asked = append(g.asked, w.server)
		}
	}
	patience := time.NewTimer(5 * time.Second)
	defer patience.Stop()
	for _, s := range g.asked {
		select {
		case <-s.watch.Settled():
		case <-patience.C:
			patience.Reset(0)
		case <-ctx.Done():
		}
	}
}

// releaseAsked leaves the servers that settle has held to the workloads.
func (g *Generation) releaseAsked() {
	for _, s := range g.asked {
		s.release()
	}
	g.asked = nil
}

// remove lets a workload's series go when it has ended.
func (w *workload) remove() {
	w.removed.Store(true)
	close(w.leave)
}

func (w *workload) ended() bool {
	select {
	case <-w.over:
		return true
	default:
		return false
	}
}

// after is the instant at which a workload takes over: at, or where the clock was set back, later, so that no row goes out twice. A
// clock that was set back by more than a loop has it join the loop where the clock is, as it does without a reload.
func (w *workload) after(before *workload, at time.Time) time.Time {
	played := before.current().Played()
	if !w.plan.FollowsWall() || !played.After(at) || played.Sub(at) > w.plan.Period(w.plan.Loop(time.Time{}, at)) {
		return at
	}
	return played
}

// wall is the wall clock's time.
func (g *Generation) wall() time.Time {
	if g.options.Wall != nil {
		return g.options.Wall().Round(0)
	}
	return time.Now().Round(0)
}
