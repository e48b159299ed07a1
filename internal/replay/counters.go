package replay

import (
	"time"

	"replayd/internal/measure"
	"replayd/internal/metrics"
)

// counters is where a runner counts: a measure.Workload, or nowhere.
type counters interface {
	Expected(n int)
	Filtered(n int)
	Sent()
	Dropped(reason measure.DropReason)
	Finished(*measure.Request)
	LoopStarted(number int64, every time.Duration)
	LoopCompleted()
	SetClock(func() (position, skew time.Duration))
	Guard(limit measure.GuardLimit, open bool)
}

// uncounted shows what a guard holds back, and counts nothing.
type uncounted struct{ *metrics.Workload }

func (uncounted) Expected(int)                                   {}
func (uncounted) Filtered(int)                                   {}
func (uncounted) Sent()                                          {}
func (uncounted) Dropped(measure.DropReason)                     {}
func (uncounted) Finished(*measure.Request)                      {}
func (uncounted) LoopStarted(int64, time.Duration)               {}
func (uncounted) LoopCompleted()                                 {}
func (uncounted) SetClock(func() (position, skew time.Duration)) {}
