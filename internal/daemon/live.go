package daemon

import (
	"fmt"
	"time"

	"github.com/prometheus/common/model"

	"replayd/internal/config"
	"replayd/internal/live"
	"replayd/internal/measure"
	"replayd/internal/replay"
	"replayd/internal/schedule"
)

// show adds a workload to the live page, if there is one.
func (w *workload) show(b *live.Board) {
	if b == nil {
		return
	}
	c, t, stats := w.config, w.server.config, w.rows.stats
	started := time.Now()
	o := live.WorkloadOptions{
		Name: c.Name, Target: t.Name, URL: t.URL, API: string(t.API), Model: t.Model,
		Schedule: inWords(c, t) + w.idleInWords(started), Closed: w.plan.Closed(), Lanes: c.Lanes, SLO: c.SLO.Bounds.Levels(),
		Objective: c.SLO.Objective, Sheds: c.Overload == replay.Drop, Trace: traceInfo(stats),
		State: func() live.State { return w.state(started) },
	}
	if c.Timed() { // else rows are not due at the trace's own times
		o.From, o.To = c.Trace.From, c.Trace.To
		o.Length, o.Curve = stats.Span, stats.Curve
	}
	w.shown.Store(b.Workload(o))
}

// A card passes requests to the live page.
type card struct{ w *workload }

func (c card) Observe(r *measure.Request) { c.w.shown.Load().Observe(r) }

// inWords describes when a workload sends its rows, and how it changes them.
func inWords(c config.Workload, t config.Target) string {
	r := c.Repeat
	words := string(r.Mode)
	switch {
	case c.Arrival == schedule.Concurrency:
		words = fmt.Sprintf("closed loop, %d at a time", c.Lanes)
		switch {
		case c.Synthetic.Given() && c.Synthetic.Requests == 0:
			words += ", without end"
		case r.Mode == schedule.Once:
			words += ", once"
		}
	case c.Arrival == schedule.Sessions:
		words = fmt.Sprintf("closed loop, %d sessions at a time", c.AtOnce)
		if r.Mode == schedule.Once {
			words += ", once"
		}
	case r.Mode == schedule.Cron:
		words = fmt.Sprintf("cron %s %s, overlap %s", r.Cron, r.Timezone, r.Overlap)
	case r.Mode == schedule.Loops && r.Align == schedule.Start:
		words = "loop from the start"
	case r.Mode == schedule.Loops:
		words = "loop on the wall clock"
	}
	if c.Speed != 1 {
		words += fmt.Sprintf(", speed %v", c.Speed)
	}
	switch {
	case c.ByRate():
		words += ", " + rateInWords(c)
	case c.Arrival == schedule.Spread:
		words += ", arrival spread"
	}
	if c.Cancel.Ratio > 0 {
		words += fmt.Sprintf(", %v %% cancelled after %v", 100*c.Cancel.Ratio, c.Cancel.After)
	}
	if !t.Stream {
		words += ", answers in one piece"
	}
	if c.Shard.Of > 1 {
		words += fmt.Sprintf(", shard %d of %d", c.Shard.Index, c.Shard.Of)
	}
	return words
}

// rateInWords describes the rate of a workload: "poisson 2/s, then 20/s over 10m".
func rateInWords(c config.Workload) string {
	per := "/s"
	if c.RateOf == schedule.Starts {
		per = " sessions/s"
	}
	words := fmt.Sprintf("%s %v%s", c.Arrival, c.Rate, per)
	if c.Arrival == schedule.Users {
		words = fmt.Sprintf("%d users, together %v/s", c.Users, c.Rate)
	}
	for i, s := range c.Stages {
		if i == maxStages {
			return words + fmt.Sprintf(", and %d stages more", len(c.Stages)-i)
		}
		words += fmt.Sprintf(", then %v%s", s.Rate, per)
		if s.Over > 0 {
			words += " over " + model.Duration(s.Over).String()
		}
		if s.Hold > 0 {
			words += " for " + model.Duration(s.Hold).String()
		}
	}
	if c.Arrival == schedule.Gamma {
		words += fmt.Sprintf(", burstiness %v", c.Burstiness)
	}
	return words
}

// maxStages is the number of stages that are described.
const maxStages = 4

// state returns the workload's state. The live page calls it once a second.
func (w *workload) state(started time.Time) live.State {
	r, health := w.current().State(), w.server.watch.Health()
	text := string(health.Text)
	switch {
	case health.Up:
		text = "answers as " + text
	case health.Reached && text != "":
		text = "answers, but not as expected: " + text
	case text != "":
		text = "does not answer: " + text
	}
	if engine := w.engine(); engine != "" && health.Up {
		text += ", " + engine
	}
	s := live.State{
		Ledger: w.count.Ledger(), Phase: live.Phase(r.Phase), Reason: r.Reason, Loop: r.Loop, Position: r.Position, LoopDuration: r.Period,
		Skew: r.Skew, TargetUp: health.Up, TargetText: text, Started: started,
	}
	if r.Next > 0 {
		s.Next = time.Now().Add(r.Next)
	}
	switch {
	case s.Phase == live.Warming:
		s.Reason = fmt.Sprintf("%d requests that count nowhere", w.config.Warmup.Requests)
	case (s.Phase == live.Waiting || s.Phase == live.Running) && time.Until(r.Due) > schedule.Soon:
		s.Reason = "next request due at " + r.Due.UTC().Format(time.RFC3339)
	}
	if text := w.failure.Load(); text != nil {
		s.Phase, s.Reason = live.Failed, *text
	}
	return s
}
