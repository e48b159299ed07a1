package openai

import (
	"testing"
	"time"

	"replayd/internal/measure"
	"replayd/internal/openai/internal/wire"
)

// Content that came before the request by more than the error of the clocks gives no latency; within the error it came at once.
func TestEarlyContent(t *testing.T) {
	write := time.Now()
	for at, early := range map[time.Duration]bool{
		-time.Hour: true, -time.Millisecond: true, -wire.ClockError: false, 0: false, time.Millisecond: false,
	} {
		x := &exchange{req: &measure.Request{Outcome: measure.OK, Timeline: measure.Timeline{Write: write}}}
		x.content(wire.Arrival{At: write.Add(at), Kernel: true, Unsure: early, Read: 1}, &x.req.Timeline)
		x.content(wire.Arrival{At: write.Add(time.Second), Kernel: true, Read: 2}, &x.req.Timeline)
		ttft, known := x.req.TTFT()
		if known == early || ttft != max(0, at) && !early || x.req.Timeline.ClockSet != early {
			t.Errorf("content at %v: TTFT %v, %v; clock set %v", at, ttft, known, x.req.Timeline.ClockSet)
		}
	}
}
