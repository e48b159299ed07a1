package daemon

import (
	"fmt"
	"time"

	"replayd/internal/config"
	"replayd/internal/live"
	"replayd/internal/measure"
)

// show puts a workload on the live page, where there is one.
func (w *workload) show(b *live.Board, slo measure.SLO) {
	if b == nil {
		return
	}
	c, t, stats := w.config, w.server.config, w.rows.stats
	started := time.Now()
	w.shown = b.Workload(live.WorkloadOptions{
		Name: c.Name, Target: t.Name, URL: t.URL, API: t.API, Model: t.Model,
		Schedule: inWords(c), Lanes: c.Lanes, SLO: slo, Trace: traceInfo(stats),
		From: time.Duration(c.Trace.From), To: time.Duration(c.Trace.To),
		Length: stats.Span, Curve: stats.Curve,
		State: func() live.State { return w.state(started) },
	})
}

// A card observes for the live page.
type card struct{ w *workload }

// Observe implements replay.Observer.
func (c card) Observe(r *measure.Request) { c.w.shown.Observe(r) }

// inWords says when a workload plays its trace.
func inWords(c config.Workload) string {
	r := c.Repeat
	words := r.Mode
	switch {
	case r.Mode == "cron":
		words = fmt.Sprintf("cron %s %s, overlap %s", r.Cron, r.Timezone, r.Overlap)
	case r.Mode == "loop" && r.Phase == "start":
		words = "loop from the start"
	case r.Mode == "loop":
		words = "loop on the wall clock"
	}
	if c.Speed != 1 {
		words += fmt.Sprintf(", speed %v", c.Speed)
	}
	if c.Arrival != "exact" {
		words += ", arrival " + c.Arrival
	}
	if c.Shard.Of > 1 {
		words += fmt.Sprintf(", shard %d of %d", c.Shard.Index, c.Shard.Of)
	}
	return words
}

// state is asked once a second.
func (w *workload) state(started time.Time) live.State {
	r, answer := w.runner.State(), w.server.watch.Answer()
	text := answer.Text
	switch {
	case answer.Up:
		text = "answers as " + text
	case text != "":
		text = "does not answer: " + text
	}
	if engine := w.engine(); engine != "" && answer.Up {
		text += ", " + engine
	}
	s := live.State{
		Counts: w.count.Counts(), Phase: live.Phase(r.Phase), Reason: r.Reason, Loop: r.Loop, Position: r.Position, LoopDuration: r.Period,
		Skew: r.Skew, TargetUp: answer.Up, TargetText: text, Started: started,
	}
	if r.Next > 0 {
		s.Next = time.Now().Add(r.Next)
	}
	if text := w.failure.Load(); text != nil {
		s.Phase, s.Reason = live.Failed, *text
	}
	return s
}
