package wire

import (
	"fmt"
	"testing"
	"time"
)

// Twenty tries, of which one must succeed: a thread that is preempted between two clock reads sees a large error.
func TestClock(t *testing.T) {
	var err error
	for range 20 {
		if err = clockErrors(); err == nil {
			return
		}
	}
	t.Error(err)
}

func clockErrors() error {
	c := NewClock()
	now := time.Now()
	// instant maps the wall time of a time.Time back to that time, within the error of the measurement.
	const tolerance = 50 * time.Microsecond
	off := func() time.Duration { return c.instant(now.UnixNano(), now).Sub(now) }
	if got := off(); got > 0 || got < -tolerance {
		return fmt.Errorf("off by %v", got)
	}
	before := c.instant(now.Add(-time.Millisecond).UnixNano(), now).Sub(now)
	if before < -time.Millisecond-tolerance || before > -time.Millisecond+tolerance {
		return fmt.Errorf("want 1ms before, got %v", before)
	}
	if got := c.instant(now.Add(time.Hour).UnixNano(), now); !got.Equal(now) {
		return fmt.Errorf("a stamp from the future: want the read's time, got %v after it", got.Sub(now))
	}
	// A step of the wall clock gives an impossible age, so the distance is measured again.
	for _, step := range []time.Duration{time.Minute, -time.Minute} {
		c.distance.Add(int64(step))
		if got := off(); got > 0 || got < -tolerance {
			return fmt.Errorf("after a step by %v off by %v", step, got)
		}
	}
	// A smaller step is detected when the measurement is over a second old.
	c.distance.Add(int64(500 * time.Millisecond))
	if got := off(); got > -400*time.Millisecond {
		return fmt.Errorf("want the error of the step, got %v: this test does not test", got)
	}
	c.measured.Add(-int64(2 * time.Second))
	if got := off(); got > 0 || got < -tolerance {
		return fmt.Errorf("after a second off by %v", got)
	}
	return nil
}
