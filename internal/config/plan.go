package config

import (
	"time"

	"replayd/internal/schedule"
)

// Plan returns the options for package schedule.
func (w *Workload) Plan() schedule.Options {
	stages := make([]schedule.Stage, len(w.Stages))
	for i, s := range w.Stages {
		stages[i] = schedule.Stage{Rate: s.Rate, Over: time.Duration(s.Over), Hold: time.Duration(s.Hold)}
	}
	o := schedule.Options{
		Arrival: schedule.Arrival(w.Arrival), Speed: w.Speed,
		From: time.Duration(w.Trace.From), To: time.Duration(w.Trace.To),
		Mode: schedule.Mode(w.Repeat.Mode), Align: schedule.Align(w.Repeat.Align), Every: time.Duration(w.Repeat.Every),
		Gap: time.Duration(w.Repeat.Gap), Offset: time.Duration(w.Repeat.Offset),
		Cron: w.Repeat.Cron, Timezone: w.Repeat.Timezone, Overlap: schedule.Overlap(w.Repeat.Overlap),
		Shard:     schedule.Shard{Index: int(w.Shard.Index), Of: w.Shard.Of},
		TurnDelay: &schedule.TurnDelay{Scale: w.TurnDelay.Scale, Max: time.Duration(w.TurnDelay.Max)},
		Rate:      w.Rate, Burstiness: w.Burstiness, Stages: stages, Users: w.Users, Seed: w.Prompt.Seed,
		RateOf: schedule.RateOf(w.RateOf), SessionsAtOnce: w.AtOnce, StartWithin: schedule.StartWithin{From: w.Within[0], To: w.Within[1]},
	}
	if !Closed(w.Arrival) {
		o.Duration = time.Duration(w.Duration)
	}
	if !Timed(w.Arrival) {
		o.Rows = w.Rows
	}
	return o
}

// PlanKeys maps option names in faults of package schedule to the workload's keys, where they differ. Only run sets
// Rows and Duration.
var PlanKeys = map[string]string{
	"mode": "repeat.mode", "align": "repeat.align", "every": "repeat.every", "gap": "repeat.gap", "offset": "repeat.offset",
	"cron": "repeat.cron", "timezone": "repeat.timezone", "overlap": "repeat.overlap",
	"from": "trace.from", "to": "trace.to", "from, to": "trace.from", "from, to, duration": "trace.from",
	"rate, duration": "rate", "rows, duration": "synthetic.requests",
}
