package daemon

import (
	"log/slog"
)

// Pause pauses or resumes a workload, with "" all of them, and returns the names of the workloads that it has changed.
// Both sides of a comparison pause together. A pause of all also applies to workloads that reloads add, until all are
// resumed. known is false if there is no workload of that name. The error names workloads that are stuck; the others
// are changed.
func (g *Generation) Pause(workload string, paused bool) (changed []string, known bool, err error) {
	if workload == "" {
		g.paused, known = paused, true
	}
	of := g.sides[workload].of
	var all []change
	for _, w := range g.workloads {
		if workload != "" && w.config.Name != workload && (of == nil || w.side.of != of) {
			continue
		}
		known = true
		all = append(all, begin("workload", w.config.Name, &w.asked, func() bool {
			for before := w.before.Load(); before != nil; before = before.before.Load() {
				before.pause(paused) // rows due before the handover belong to it
			}
			return w.pause(paused)
		}))
	}
	changed, err = awaitChanges(g.options.within(), all...)
	return changed, known, err
}

func (g *Generation) logPaused(workloads []string, paused bool) {
	verb := map[bool]string{true: "paused", false: "resumed"}[paused]
	for _, name := range workloads {
		g.options.Log.Info(verb, "workload", name)
		g.options.note(slog.LevelInfo, verb+" "+name)
	}
}
