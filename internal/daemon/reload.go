package daemon

import (
	"context"
	"time"
)

// handoverAhead is the time from arranging a handover to its instant. It suffices for the successor to build its first messages
// and open its connections.
const handoverAhead = time.Second

// Replace starts a generation in place of the one that it was built from. Workloads that it took over continue, and new ones
// begin. A changed workload begins with the first row due a second from now; its predecessor stops at that instant and drains. A
// removed workload drains at once, and its series are removed after it. Paused workloads stay paused, and new ones are paused if
// all are. Replace does not block.
func (g *Generation) Replace(ctx, hard context.Context, old *Generation) {
	g.paused = old.paused
	g.startScrapers(ctx)
	old.endScrapers(g)
	old.endComparisons(g)
	g.shared.state.use(g.options.Config.State)
	g.startComparisons(ctx)
	g.shared.waiting.Bound(int64(g.options.Config.MaxWaiting))
	at := g.wall().Add(handoverAhead)
	for _, w := range g.workloads {
		if w.started() {
			w.setDrain(time.Duration(g.options.Config.Drain))
			continue
		}
		before := old.workload(w.config.Name)
		if w.place.of != nil {
			if from, ok := w.place.of.together(g, old, at); ok {
				g.takeOver(ctx, hard, w, before, from)
				continue
			}
		}
		switch {
		case before == nil:
			g.start(ctx, hard, w, handover{})
		case before.ended():
			g.takeOver(ctx, hard, w, before, handover{})
		default:
			g.takeOver(ctx, hard, w, before, handover{at: w.after(before, at)})
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

// takeOver starts a workload in place of its predecessor; nil: there is none.
func (g *Generation) takeOver(ctx, hard context.Context, w, before *workload, from handover) {
	from.before = before
	g.start(ctx, hard, w, from)
	if before == nil {
		return
	}
	if !before.ended() {
		before.retire(from.at)
	}
	before.remove()
}

// settle waits up to 5 s for new targets to answer if rows would otherwise be sent uncorrected or late: a successor begins at its
// instant whether they have answered or not.
func (g *Generation) settle(ctx context.Context, old *Generation) {
	for _, w := range g.workloads {
		if !w.started() && (old.workload(w.config.Name) != nil || w.place.of != nil) {
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

// releaseAsked releases the servers that settle has kept; the workloads keep them.
func (g *Generation) releaseAsked() {
	for _, s := range g.asked {
		s.release()
	}
	g.asked = nil
}

// remove removes a workload's series when it has ended.
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

// after returns the instant at which a workload takes over: at, or later after the clock was set back, so that no row is sent twice.
// If the clock was set back by more than a loop, the workload joins the loop at the present instant, as it does without a reload.
func (w *workload) after(before *workload, at time.Time) time.Time {
	played := before.current().Played()
	if !w.plan.FollowsWall() || !played.After(at) || played.Sub(at) > w.plan.Period(w.plan.Loop(time.Time{}, at)) {
		return at
	}
	return played
}

// wall returns the wall clock's time.
func (g *Generation) wall() time.Time {
	if g.options.Wall != nil {
		return g.options.Wall().Round(0)
	}
	return time.Now().Round(0)
}
