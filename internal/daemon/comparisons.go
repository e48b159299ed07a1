package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"time"

	"replayd/internal/canary"
	"replayd/internal/config"
	"replayd/internal/metrics"
)

// A place is a workload's place in a comparison.
type place struct {
	of   *comparison
	side canary.Side
}

// addComparisons makes the comparisons, or takes them over from the generation before if nothing changed on either side. Workloads are not opened yet.
func (g *Generation) addComparisons(old *Generation, around map[string]bool) {
	g.places = map[string]place{}
	workloads := map[string]config.Workload{}
	for _, w := range g.options.Config.Workloads {
		workloads[w.Name] = w
	}
	for i, c := range g.options.Config.Comparisons {
		base, known := workloads[c.Workload]
		cand := base
		cand.Name, cand.Target = mirrored(c), c.Candidate
		servers := [2]*server{g.servers[base.Target], g.servers[cand.Target]}
		if !known || around[fmt.Sprintf("comparisons[%d]", i)] || servers[canary.Baseline] == nil || servers[canary.Candidate] == nil {
			continue // the fault is known
		}
		one := old.comparisonNamed(c.Name)
		if one == nil || !one.same(c, [2]config.Workload{base, cand}, servers) || !one.playsOn(old) {
			one = g.newComparison(c, [2]config.Workload{base, cand}, servers, one)
		}
		g.comparisons = append(g.comparisons, one)
		g.places[base.Name] = place{one, canary.Baseline}
		g.places[cand.Name] = place{one, canary.Candidate}
	}
}

// newComparison makes a comparison. Counters continue those of before, a comparison of the same name; nil: there is none.
func (g *Generation) newComparison(c config.Comparison, sides [2]config.Workload, servers [2]*server, before *comparison) *comparison {
	one := newComparison(c, sides, servers)
	one.before = before
	one.judged, one.block, one.pair = g.options.Judged, g.options.Block, g.options.Pair
	o := g.options // a copy, so that g is not kept in memory
	one.said = func(level slog.Level, text string) {
		o.Log.Log(context.Background(), level, text, "comparison", c.Name)
		o.note(level, "comparison "+c.Name+": "+text)
	}
	for side, s := range servers {
		shared, target := g.shared, sides[side].Target
		one.watched[side] = func() process { return process{s.watch.Model(), shared.restarts(target), true} }
	}
	return one
}

// same says whether a comparison has these sides.
func (c *comparison) same(with config.Comparison, sides [2]config.Workload, servers [2]*server) bool {
	return c.config == with && reflect.DeepEqual(c.workloads, sides) && c.servers == servers
}

// playsOn says whether both workloads of a comparison can be taken over from its generation: their trace is the same, and neither has failed.
func (c *comparison) playsOn(old *Generation) bool {
	for _, w := range c.workloads {
		before := old.workload(w.Name)
		if before == nil || before.broken.Load() || !slices.EqualFunc(before.files(), filesOf(w), unchanged) {
			return false
		}
	}
	return true
}

func (g *Generation) comparisonNamed(name string) *comparison {
	if g == nil {
		return nil
	}
	for _, c := range g.comparisons {
		if c.config.Name == name {
			return c
		}
	}
	return nil
}

// openCandidates opens the workloads of the candidates. Those of baselines with faults have the same faults and are left out.
func (g *Generation) openCandidates(ctx context.Context, old *Generation, around map[string]bool) config.Faults {
	var faults config.Faults
	for _, c := range g.comparisons {
		i := slices.IndexFunc(g.options.Config.Workloads, func(w config.Workload) bool { return w.Name == c.config.Workload })
		if g.named[c.config.Workload] == nil {
			continue
		}
		w, found := g.openWorkload(ctx, fmt.Sprintf("workloads[%d]", i), c.workloads[canary.Candidate], old, around)
		faults = append(faults, found...)
		g.keepOpened(w)
	}
	return faults
}

// together returns the handover of both sides of a new comparison, if one of them takes over from a workload: rows of different instants are no pairs.
// It is not before at. ok is false if neither takes over.
func (c *comparison) together(g, old *Generation, at time.Time) (from handover, ok bool) {
	from.at = at
	for _, side := range c.workloads {
		w, before := g.workload(side.Name), old.workload(side.Name)
		if w == nil || before == nil {
			continue
		}
		ok = true
		from.paused = from.paused || before.current().Paused()
		if after := w.after(before, at); after.After(from.at) {
			from.at = after
		}
	}
	return from, ok
}

// startComparisons runs the new comparisons, and shows all on the pages.
func (g *Generation) startComparisons(ctx context.Context) {
	show := make([]func() metrics.Compared, len(g.comparisons))
	for i, c := range g.comparisons {
		show[i] = c.now
		if c.end == nil {
			c.continues()
			c.identity = c.identityOf(g.rowsOf(c.config.Workload))
			g.shared.state.restore(c)
			var own context.Context
			own, c.end = context.WithCancel(context.WithoutCancel(ctx))
			g.shared.paced.Go(func() { c.run(own) })
		}
	}
	g.shared.state.keep(g.comparisons)
	if g.options.Comparisons != nil {
		g.options.Comparisons.Show(show)
	}
}

// rowsOf returns the digest of a workload's rows.
func (g *Generation) rowsOf(workload string) string {
	w := g.named[workload]
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rows.stats.SHA256 + w.rows.texted
}

// endComparisons ends the comparisons that the next generation has not taken over; nil: there is none.
func (g *Generation) endComparisons(next *Generation) {
	for _, c := range g.comparisons {
		if (next == nil || !slices.Contains(next.comparisons, c)) && c.end != nil {
			c.end()
		}
	}
}

// RestartComparison makes a comparison forget its evidence. It returns false if no comparison has the name.
func (g *Generation) RestartComparison(name string) bool {
	c := g.comparisonNamed(name)
	if c != nil {
		c.restart()
	}
	return c != nil
}
