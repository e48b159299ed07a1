package daemon

import (
	"context"
	"log/slog"
	"time"
)

// handoverAhead is how long before its instant a handover is arranged: the successor has its first messages built and
// its connections open by then.
const handoverAhead = time.Second

// Replace lets a generation run in the place of the one that it was built from: workloads that it took over run on
// untouched, new ones begin. One that changed begins with the first row due at an instant a second from now, at which
// the one before stops and drains; one that is gone drains at once, and its series go with it.
func (g *Generation) Replace(ctx, hard context.Context, old *Generation) {
	g.startScrapers(ctx)
	old.endScrapers(g)
	release := g.settle(ctx, old)
	defer release()
	at := time.Now().Round(0).Add(handoverAhead)
	for _, w := range g.workloads {
		if w.started() {
			w.runner.SetDrain(time.Duration(g.options.Config.Drain))
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
			before.runner.Retire(at)
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
}

// settle lets targets that are new answer first, where rows would go out uncorrected or late without that: a
// successor begins at an instant, whether they have or not. That takes 5 s at most. The release is for afterwards.
func (g *Generation) settle(ctx context.Context, old *Generation) (release func()) {
	var held []*server
	for _, w := range g.workloads {
		if !w.started() && old.workload(w.config.Name) != nil {
			g.hold(ctx, w.server)
			held = append(held, w.server)
		}
	}
	patience := time.NewTimer(5 * time.Second)
	defer patience.Stop()
	for _, s := range held {
		select {
		case <-s.watch.Settled():
		case <-patience.C:
			patience.Reset(0)
		case <-ctx.Done():
		}
	}
	return func() {
		for _, s := range held {
			s.release()
		}
	}
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

// Pause holds back what falls due of a workload, "" of all, or lets it go again. False: there is none of that name.
func (g *Generation) Pause(workload string, paused bool) bool {
	known := false
	for _, w := range g.workloads {
		if workload != "" && w.config.Name != workload {
			continue
		}
		known = true
		if before := w.before.Load(); before != nil {
			before.Pause(paused) // what is due before the handover is its own
		}
		if !w.runner.Pause(paused) {
			continue
		}
		verb := map[bool]string{true: "paused", false: "resumed"}[paused]
		g.options.Log.Info(verb, "workload", w.config.Name)
		g.options.note(slog.LevelInfo, verb+" "+w.config.Name)
	}
	return known
}

// note puts an event on the live page.
func (o *Options) note(level slog.Level, text string) {
	if o.Board != nil {
		o.Board.Note(time.Now(), level, text)
	}
}
