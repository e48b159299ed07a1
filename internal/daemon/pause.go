package daemon

import (
	"log/slog"
	"time"
)

// Pause pauses or resumes a workload, with "" all of them, and returns the names of the workloads that it has changed. It does not
// block. Both sides of a comparison pause together. A pause of all also applies to workloads that reloads add, until all are resumed.
// known is false if there is no workload of that name.
func (g *Generation) Pause(workload string, paused bool) (changed []string, known bool) {
	if workload == "" {
		g.paused, known = paused, true
	}
	of := g.places[workload].of
	for _, w := range g.workloads {
		if workload != "" && w.config.Name != workload && (of == nil || w.place.of != of) {
			continue
		}
		known = true
		for before := w.before.Load(); before != nil; before = before.before.Load() {
			before.pause(paused) // rows due before the handover belong to it
		}
		if w.pause(paused) {
			changed = append(changed, w.config.Name)
		}
	}
	return changed, known
}

// pauses reports whether a workload begins paused: if its predecessor is paused, or without a predecessor if all are.
func (g *Generation) pauses(before *workload) bool {
	if before != nil {
		return before.current().Paused()
	}
	return g.paused
}

// tellPaused logs what Pause has changed.
func (g *Generation) tellPaused(workloads []string, paused bool) {
	verb := map[bool]string{true: "paused", false: "resumed"}[paused]
	for _, name := range workloads {
		g.options.Log.Info(verb, "workload", name)
		g.options.note(slog.LevelInfo, verb+" "+name)
	}
}

// note adds an event to the live page.
func (o *Options) note(level slog.Level, text string) {
	if o.Board != nil {
		o.Board.Note(time.Now(), level, text)
	}
}
