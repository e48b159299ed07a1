//go:build linux

package lab

import (
	"math"
	"testing"
	"testing/synctest"
	"time"
)

func TestSteal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		// 20 ms are stolen in the third slice.
		s := WatchSteal(func() time.Duration {
			if time.Since(begin) > 250*time.Millisecond {
				return 5*time.Second + 20*time.Millisecond
			}
			return 5 * time.Second
		})
		<-time.After(time.Second + time.Millisecond)
		s.Stop()
		if got := s.Total(); got != 20*time.Millisecond {
			t.Errorf("want 20 ms taken, got %v", got)
		}
		if got, want := s.Share(), 20.0/1001; math.Abs(got-want) > 1e-9 {
			t.Errorf("want a share of %v, got %v", want, got)
		}
		at := func(ms int64) int64 { return begin.UnixNano() + ms*int64(time.Millisecond) }
		for _, c := range []struct {
			from, to int64
			clean    bool
		}{
			{0, 50, true},
			{0, 99, true},
			{150, 150, false},
			{250, 250, false},
			{250, 260, false},
			{350, 350, false},
			{450, 450, true},
			{50, 800, false},
			{500, 900, true},
		} {
			if got := s.Clean(at(c.from), at(c.to)); got != c.clean {
				t.Errorf("%d to %d ms: want clean %v, got %v", c.from, c.to, c.clean, got)
			}
		}
	})
}
