package daemon

import (
	"context"
	"errors"
	"time"

	"replayd/internal/config"
	"replayd/internal/replay"
)

// Replace starts a generation in place of the one that it was built from. Workloads that it took over continue, and new
// ones begin. A changed workload begins with the first row due a second from now; its predecessor stops at that instant
// and drains. A removed workload drains at once, and its series are removed after it. Paused workloads stay paused, and
// new ones are paused if all are. Replace does not block.
func (g *Generation) Replace(ctx, hard context.Context, old *Generation) {
	g.paused = old.paused
	g.startScrapers(ctx)
	old.endScrapers(g)
	old.endComparisons(g)
	g.shared.state.Use(g.claimed)
	g.startComparisons(ctx)
	g.shared.ending.drain.Store(int64(g.options.Config.Drain))
	wall := time.Now
	if g.options.Wall != nil {
		wall = g.options.Wall
	}
	at := replay.Instant{Own: time.Now().Add(handoverAhead), Wall: wall().Round(0).Add(handoverAhead)}
	for _, w := range g.workloads {
		if w.started() {
			w.setDrain(g.options.Config.Drain)
			continue
		}
		before := old.named[w.config.Name]
		from := handover{before: before, at: at}
		w.follow(&from)
		if w.side.of != nil {
			w.side.of.join(g, old, &from)
		}
		g.takeOver(ctx, hard, w, from)
	}
	for _, w := range old.workloads {
		if g.named[w.config.Name] == nil {
			w.stop()
			w.remove()
		}
	}
	for _, s := range old.servers {
		s.release()
	}
	g.releaseAsked()
}

// reach waits until the workloads can be changed that this generation replaces. The error names those that are stuck:
// nothing is replaced then. One that is stuck and is removed, or does not change, holds no other up.
func (g *Generation) reach(old *Generation) error {
	var all []change
	for _, w := range g.workloads {
		before := old.named[w.config.Name]
		if w.started() || before == nil || before.ended() {
			continue
		}
		all = append(all, begin("workload", before.config.Name, &before.reached, func() bool {
			before.reach()
			return false
		}))
	}
	_, err := awaitChanges(g.options.within(), all...)
	return err
}

// takeOver starts a workload in place of its predecessor, if there is one.
func (g *Generation) takeOver(ctx, hard context.Context, w *workload, from handover) {
	g.start(ctx, hard, w, from)
	before := from.before
	if before == nil {
		return
	}
	if !before.ended() {
		before.retire(from.at)
	}
	g.tellCut(ctx, w, from)
	before.remove()
}

// settle waits up to 5 s for new targets to answer if rows would otherwise be sent uncorrected or late: a successor
// begins at its instant whether they have answered or not.
func (g *Generation) settle(ctx context.Context, old *Generation) {
	for _, w := range g.workloads {
		if !w.started() && (old.named[w.config.Name] != nil || w.side.of != nil) {
			w.server.use(ctx, &g.shared.running, g.options.Failed)
			g.asked = append(g.asked, w.server)
		}
	}
	patience, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for _, s := range g.asked {
		select {
		case <-s.watch.Settled():
		case <-patience.Done():
		}
	}
}

// Next builds the generation that will replace this one, and gives new targets up to 5 s to answer. Meanwhile only
// Pause may be called on this one: one successor is built at a time. An error changes nothing.
func (g *Generation) Next(ctx context.Context, c config.Config) (*Generation, error) {
	next := &Generation{options: g.options, shared: g.shared}
	next.options.Config = c
	if err := next.build(ctx, g); err != nil {
		return nil, err
	}
	if err := next.ClaimState(ctx, 0); err != nil { // a reload waits for no other process
		return nil, errors.Join(err, next.discard())
	}
	next.settle(ctx, g)
	return next, nil
}
