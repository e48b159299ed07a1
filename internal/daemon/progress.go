package daemon

import (
	"time"

	"replayd/internal/measure"
)

// A Progress is the progress of plans that end.
type Progress struct {
	Ledger measure.Ledger // of all workloads
	Length time.Duration  // from the first instant of the longest plan to its last row; 0: not known yet, or the number of rows is limited
	Left   time.Duration  // until the last row of all plans is due; more than Length before the plans begin
}

// NotExact says why requests of a target of this generation do not ask for exact lengths of answers; "": they do.
func (g *Generation) NotExact() string {
	for _, w := range g.workloads {
		if why, _ := w.server.client.NotExact(); why != "" {
			return why
		}
	}
	return ""
}

// Progress returns the progress of a generation that was started and none of whose plans loops.
func (g *Generation) Progress() Progress {
	s := Progress{Ledger: g.options.Meter.Ledger()}
	for _, w := range g.workloads {
		at := w.current().State()
		if at.Period == 0 || w.config.Rows > 0 {
			return Progress{Ledger: s.Ledger}
		}
		played := float64(at.Position-w.config.Trace.From) / w.config.Speed
		s.Length = max(s.Length, at.Period)
		s.Left = max(s.Left, at.Next+at.Period-time.Duration(played))
	}
	return s
}
