package replay

import (
	"time"

	"replayd/internal/measure"
	"replayd/internal/metrics"
)

// counters counts the events of a runner. It is a metrics.Workload or uncounted.
type counters interface {
	Expected(n int)
	Filtered(n int)
	Sent()
	Dropped(reason measure.DropReason)
	Finished(*measure.Request)
	Routed(moved bool, e measure.Echo)
	SessionBegun()
	SessionEnded(*measure.Session)
	LoopStarted(number int64, every time.Duration)
	LoopCompleted()
	SetClock(func() (position, skew time.Duration))
	Guard(limit measure.GuardLimit, open bool)
}

// uncounted sets the guard's gauges and counts nothing. The warm-up uses it.
type uncounted struct{ *metrics.Workload }

func (uncounted) Expected(int)                                   {}
func (uncounted) Filtered(int)                                   {}
func (uncounted) Sent()                                          {}
func (uncounted) Dropped(measure.DropReason)                     {}
func (uncounted) Finished(*measure.Request)                      {}
func (uncounted) Routed(bool, measure.Echo)                      {}
func (uncounted) SessionBegun()                                  {}
func (uncounted) SessionEnded(*measure.Session)                  {}
func (uncounted) LoopStarted(int64, time.Duration)               {}
func (uncounted) LoopCompleted()                                 {}
func (uncounted) SetClock(func() (position, skew time.Duration)) {}
