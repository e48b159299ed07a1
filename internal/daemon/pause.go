package daemon

import (
	"log/slog"
	"time"
)

// Pause holds back what falls due of a workload, "" of all, or lets it go again, and gives the names of those that it has changed.
// It waits for nothing. A pause of all holds for workloads that reloads add, too, until all are let go. Not known: there is none of
// that name, and nothing has changed.
func (g *Generation) Pause(workload string, paused bool) (changed []string, known bool) {
	if workload == "" {
		g.paused, known = paused, true
	}
	for _, w := range g.workloads {
		if workload != "" && w.config.Name != workload {
			continue
		}
		known = true
		for before := w.before.Load(); before != nil; before = before.before.Load() {
			before.pause(paused) // what is due before the handover is its own
		}
		if w.pause(paused) {
			changed = append(changed, w.config.Name)
		}
	}
	return changed, known
}

// pauses says whether a workload begins paused: as the one before is, or where there was none, when all are.
func (g *Generation) pauses(before *workload) bool {
	if before != nil {
		return before.current().Paused()
	}
	return g.paused
}

// tellPaused tells what Pause has changed.
func (g *Generation) tellPaused(workloads []string, paused bool) {
	verb := map[bool]string{true: "paused", false: "resumed"}[paused]
	for _, name := range workloads {
		g.options.Log.Info(verb, "workload", name)
		g.options.note(slog.LevelInfo, verb+" "+name)
	}
}

// note puts an event on the live page.
func (o *Options) note(level slog.Level, text string) {
	if o.Board != nil {
		o.Board.Note(time.Now(), level, text)
	}
}
