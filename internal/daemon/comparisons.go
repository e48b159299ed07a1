package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"replayd/internal/canary"
	"replayd/internal/comparison"
	"replayd/internal/config"
	"replayd/internal/fault"
	"replayd/internal/replay"
)

// addComparisons makes the comparisons, or takes over those of which neither side has changed. No workload is open yet.
func (g *Generation) addComparisons(old *Generation, faulty map[string]bool) {
	g.sides = map[string]side{}
	workloads := map[string]config.Workload{}
	for _, w := range g.options.Config.Workloads {
		workloads[w.Name] = w
	}
	for i, c := range g.options.Config.Comparisons {
		base, known := workloads[c.Workload]
		cand := base
		cand.Name, cand.Target = mirrored(c), c.Candidate
		sides, servers := [2]config.Workload{base, cand}, [2]*server{g.servers[base.Target], g.servers[cand.Target]}
		if !known || faulty[fmt.Sprintf("comparisons[%d]", i)] || slices.Contains(servers[:], nil) {
			continue // the fault is known
		}
		one := old.comparisonNamed(c.Name)
		if one == nil || !one.same(c, sides, servers) || !one.playsOn(old) {
			one = g.newComparison(c, sides, servers)
		}
		g.comparisons = append(g.comparisons, one)
		g.sides[base.Name], g.sides[cand.Name] = side{one, canary.Baseline}, side{one, canary.Candidate}
	}
}

// newComparison makes a comparison. Its counters are those of all comparisons that had its name.
func (g *Generation) newComparison(
	c config.Comparison, sides [2]config.Workload, servers [2]*server,
) *comparedSides {
	o := g.options // a copy, so that g is not kept in memory
	options := comparison.Options{
		Options: c.Options, Name: c.Name, Workload: c.Workload, Baseline: sides[canary.Baseline].Target,
		Candidate: c.Candidate, Given: evidenceOf(c, sides, servers), Listeners: o.Listeners,
		News: func(level slog.Level, text string) {
			o.Log.Log(context.Background(), level, text, "comparison", c.Name)
			o.note(level, "comparison "+c.Name+": "+text)
		},
	}
	if o.Comparisons != nil {
		options.Counters = o.Comparisons.Counters(c.Name)
	}
	for i, s := range servers {
		shared, target := g.shared, sides[i].Target
		of := s.config // without an address for all of them, the pages are those of one of the pods
		all := len(of.Pods) == 0 || of.Metrics.Replicas != "" || of.Metrics.URL != ""
		options.Engines[i] = func() comparison.Engine {
			e := comparison.Engine{
				Model: s.watch.Model(), Restarts: shared.restarts(target), Counted: true, Pods: s.client.Pods(),
			}
			if all {
				e.Generated, e.Generates = shared.generated(target)
			}
			return e
		}
	}
	shared := g.shared
	return &comparedSides{
		Comparison: comparison.New(options), config: c, workloads: sides, servers: servers,
		runners: replay.NewSides(), equal: !g.mayBeOneServer(servers),
		part: sync.OnceValue(func() int { return shared.begun.next(sides[0].Name, sides[1].Name) }),
	}
}

// resolveWithin bounds the resolution of the names of a comparison's two sides.
const resolveWithin = 2 * time.Second

// mayBeOneServer looks at both servers. In virtual time and in a check of the configuration no name is resolved.
func (g *Generation) mayBeOneServer(servers [2]*server) bool {
	ctx, cancel := context.WithTimeout(context.Background(), resolveWithin)
	defer cancel()
	resolve := func(ctx context.Context, host string) ([]netip.Addr, error) {
		return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	}
	if g.options.Dial != nil || g.checks {
		resolve = nil
	}
	for _, base := range servers[canary.Baseline].places() {
		for _, cand := range servers[canary.Candidate].places() {
			names, ports := [2]string{base[0], cand[0]}, [2]string{base[1], cand[1]}
			if comparison.MayBeOneServer(ctx, names, ports, resolve) {
				return true
			}
		}
	}
	return false
}

// Played returns what the first comparison is of: the begin of the trace's digest, and the models of the servers.
func (g *Generation) Played() (sha256 string, models [2]string) {
	one := g.comparisons[0]
	for side, s := range one.servers {
		models[side] = s.watch.Model()
	}
	return g.named[one.config.Workload].now().rows.sha256(), models
}

// playsOn says whether both workloads of a comparison can be taken over: their trace is the same, and neither failed.
func (c *comparedSides) playsOn(old *Generation) bool {
	for _, w := range c.workloads {
		before := old.named[w.Name]
		if before == nil || before.broken.Load() || !slices.EqualFunc(before.files(), filesOf(w), unchanged) {
			return false
		}
	}
	return true
}

// openCandidates opens the workloads of candidates. Those of baselines with faults have the same ones and are left out.
func (g *Generation) openCandidates(ctx context.Context, old *Generation, faulty map[string]bool) fault.List {
	var faults fault.List
	for _, c := range g.comparisons {
		i := slices.IndexFunc(g.options.Config.Workloads, func(w config.Workload) bool {
			return w.Name == c.config.Workload
		})
		if g.named[c.config.Workload] == nil {
			continue
		}
		w, found := g.openWorkload(ctx, fmt.Sprintf("workloads[%d]", i), c.workloads[canary.Candidate], old, faulty)
		faults = append(faults, found...)
		g.addOpened(w)
	}
	return faults
}

// join gives a side of a new comparison the instant and the place of both: rows of different instants are no pairs. What the
// baseline takes over counts, if it takes over anything.
func (c *comparedSides) join(g, old *Generation, own *handover) {
	at, paused := own.at, false
	names := [2]string{c.workloads[0].Name, c.workloads[1].Name}
	parts := [2]int{anew, anew}
	for _, is := range []canary.Side{canary.Candidate, canary.Baseline} {
		w, before := g.named[names[is]], old.named[names[is]]
		if w == nil || before == nil {
			continue
		}
		one := handover{before: before, at: at}
		w.follow(&one)
		if w.plan.FollowsWall() && one.Begin.Before(own.Begin) {
			one.Begin, one.at = own.Begin, own.at // later, after the clock was set back
		}
		paused, parts[is] = paused || before.current().Paused(), one.Part
		own.Begin, own.Place, own.Over, own.at = one.Begin, one.Place, one.Over, one.at
	}
	own.Paused = paused
	if parts[0] != parts[1] || parts[0] == anew { // a row has one id on both sides
		parts[0] = c.part()
	}
	own.Part = parts[0]
}

// startComparisons runs the new comparisons, and shows all on the pages.
func (g *Generation) startComparisons(ctx context.Context) {
	store, watchdog := g.shared.state, g.shared.watchdog
	var all []*comparison.Comparison
	var show []func() comparison.Status
	for _, c := range g.comparisons {
		all, show = append(all, c.Comparison), append(show, c.Status)
		if c.end != nil {
			continue
		}
		if !c.equal {
			g.options.Log.Info("both sides may be one server: each has texts of its own", "comparison", c.config.Name)
		}
		store.Restore(c.Comparison, g.named[c.config.Workload].rows.digest())
		var own context.Context
		own, c.end = context.WithCancel(context.WithoutCancel(ctx))
		watchdog.watch(c, &watched{kind: "comparison", name: c.config.Name, turn: c.Turn, show: func(bool) {}})
		g.shared.paced.Go(func() {
			c.Run(own)
			watchdog.forget(c)
		})
	}
	store.Keep(all)
	if g.options.Comparisons != nil {
		g.options.Comparisons.Show(show)
	}
}

// endComparisons ends the comparisons that the next generation has not taken over, when both their workloads have
// ended: until then their requests are counted, and nothing is shown. nil: all workloads have ended.
func (g *Generation) endComparisons(next *Generation) {
	for _, c := range g.comparisons {
		switch {
		case c.end == nil || next != nil && slices.Contains(next.comparisons, c):
		case next == nil:
			c.end()
		default:
			c.Replaced()
			var overs []chan struct{}
			for _, side := range c.workloads {
				if w := g.named[side.Name]; w != nil {
					overs = append(overs, w.over)
				}
			}
			g.shared.paced.Go(func() {
				for _, over := range overs {
					<-over
				}
				c.end()
			})
		}
	}
}

// RestartComparison makes a comparison forget its evidence, unless that is about the version already; "" is none, and
// no evidence is about it. anew says that the evidence was forgotten. The error says that the comparison is stuck, or
// unknown.
func (g *Generation) RestartComparison(name, version string) (anew bool, err error) {
	c := g.comparisonNamed(name)
	if c == nil {
		return false, fmt.Errorf("want the name of a comparison, got %q", name)
	}
	changed, err := awaitChanges(g.options.within(), begin("comparison", name, &c.asked, func() bool {
		if c.Judges(version) {
			return false
		}
		for _, s := range c.servers {
			s.client.Renew() // a Service may have other pods by now, and a kept connection stays with its pod
			s.watch.Lookup(context.Background())
		}
		c.Restart(version)
		return true
	}))
	return len(changed) > 0, err
}
