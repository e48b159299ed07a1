package schedule

import (
	"time"

	"replayd/internal/trace"
)

// FromFile is the Source of a checked trace file, which must stay open as long as the plan is used.
func FromFile(f *trace.File) Source {
	return Source{
		HasTimestamps: f.Stats.HasTimestamps, Last: f.Stats.Span, Tick: f.Stats.Tick,
		Rows: func(from time.Duration) (func() (trace.Record, error), error) {
			rows, err := f.Rows(from)
			if err != nil {
				return nil, err
			}
			return rows.Next, nil
		},
	}
}
