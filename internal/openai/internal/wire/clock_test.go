package wire

import (
	"testing"
	"time"
)

func TestClock(t *testing.T) {
	c := NewClock()
	now := time.Now()
	// instant maps the wall time of a time.Time back to that time, within the error of the measurement.
	const tolerance = 50 * time.Microsecond // generous: a VM can be preempted between two clock reads
	if got := c.instant(now.UnixNano(), now).Sub(now); got > 0 || got < -tolerance {
		t.Errorf("off by %v", got)
	}
	if got := c.instant(now.Add(-time.Millisecond).UnixNano(), now).Sub(now); got < -time.Millisecond-tolerance || got > -time.Millisecond+tolerance {
		t.Errorf("want 1ms before, got %v", got)
	}
	if got := c.instant(now.Add(time.Hour).UnixNano(), now); !got.Equal(now) {
		t.Errorf("a stamp from the future: want the read's time, got %v after it", got.Sub(now))
	}
	// A step of the wall clock gives an impossible age, so the distance is measured again.
	for _, step := range []time.Duration{time.Minute, -time.Minute} {
		c.distance.Add(int64(step))
		if got := c.instant(now.UnixNano(), now).Sub(now); got > 0 || got < -tolerance {
			t.Errorf("after a step by %v off by %v", step, got)
		}
	}
	// A smaller step is detected when the measurement is over a second old.
	c.distance.Add(int64(500 * time.Millisecond))
	if got := c.instant(now.UnixNano(), now).Sub(now); got > -400*time.Millisecond {
		t.Errorf("want the error of the step, got %v: this test does not test", got)
	}
	c.measured.Add(-int64(2 * time.Second))
	if got := c.instant(now.UnixNano(), now).Sub(now); got > 0 || got < -tolerance {
		t.Errorf("after a second off by %v", got)
	}
}
