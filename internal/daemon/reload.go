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
	at := time.Now().Round(0).Add(handoverAhead)
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
			g.hold(ctx, w.server)
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
